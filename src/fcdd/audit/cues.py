"""What a mark alone does: text, a time stamp and a sticker, put into good images at several places.

A detector of good parts should find foreign things, so a score that moves is no fault by itself. The answer says how
far such a mark would carry a good part, and whether the heat goes to the mark, as it must if heat explains the score.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from scipy import ndimage

from .chance import LEVEL, ODDS, detectable, mean_interval
from .evidence import Evidence, Pixels, cells_of, scores_of
from .findings import Finding, Illustration, Question, Severity

GOOD = 10  # images each mark is tried on
MATTERS = 0.25  # share of the gap between good and anomalous scores that has to be noticed, else too few to say
FINE = 4  # times the image's resolution at which marks are drawn
# Left and top as fractions of what the mark leaves free.
PLACES = {"at the lower left": (0.04, 0.96), "at the upper right": (0.96, 0.04), "in the middle": (0.5, 0.5)}


def text(image: Pixels, place: tuple[float, float]) -> tuple[Pixels, NDArray[np.bool_]]:
    """A watermark: two lines of half-transparent white.

    As for all marks: `image` is (H, W, 3); `place` is left and top in [0, 1], as fractions of what the mark leaves
    free. The answer is the marked image and the mask (H, W) of the mark's box.
    """
    return _written(image, place, "© image archive\nwww.example.org", (255, 255, 255), 0.6)


def stamp(image: Pixels, place: tuple[float, float]) -> tuple[Pixels, NDArray[np.bool_]]:
    """A camera's time stamp: one line of opaque yellow; see `text`."""
    return _written(image, place, "2024-05-17 11:42", (255, 210, 60), 1.0)


def sticker(image: Pixels, place: tuple[float, float]) -> tuple[Pixels, NDArray[np.bool_]]:
    """A round white label of a tenth of the image's side; see `text`."""
    side = max(6, round(0.1 * min(image.shape[:2])))
    disc = Image.new("L", (side * FINE, side * FINE))
    ImageDraw.Draw(disc).ellipse((0, 0, side * FINE - 1, side * FINE - 1), 255)
    return _laid(image, place, disc.resize((side, side), Image.Resampling.BOX), (240, 240, 235), 1.0)


MARKS = {"watermark": text, "time stamp": stamp, "sticker": sticker}


def _written(
    image: Pixels, place: tuple[float, float], words: str, colour: tuple[int, int, int], opacity: float
) -> tuple[Pixels, NDArray[np.bool_]]:
    font = ImageFont.load_default(FINE * max(7, round(0.036 * max(image.shape[:2]))))
    left, top, right, bottom = ImageDraw.Draw(Image.new("L", (1, 1))).multiline_textbbox((0, 0), words, font)
    layer = Image.new("L", (round(right - left) + 2, round(bottom - top) + 2))
    ImageDraw.Draw(layer).multiline_text((1 - left, 1 - top), words, 255, font)
    fitted = (min(layer.width // FINE, image.shape[1]), min(layer.height // FINE, image.shape[0]))
    return _laid(image, place, layer.resize(fitted, Image.Resampling.BOX), colour, opacity)


def _laid(
    image: Pixels, place: tuple[float, float], layer: Image.Image, colour: tuple[int, int, int], opacity: float
) -> tuple[Pixels, NDArray[np.bool_]]:
    """The image with the layer (grey = how much of the colour shows), and the mask (H, W) of the layer's box."""
    height, width = image.shape[:2]
    left, top = (round(f * (n - m)) for f, n, m in zip(place, (width, height), layer.size, strict=True))
    box = slice(top, top + layer.height), slice(left, left + layer.width)
    alpha = np.asarray(layer, np.float32)[..., None] / 255 * opacity
    result, mask = image.copy(), np.zeros((height, width), np.bool_)
    result[box] = np.round((1 - alpha) * image[box] + alpha * np.array(colour, np.float32))
    mask[box] = True
    return result, mask


def answer(evidence: Evidence, quiet: bool) -> list[Finding]:
    """One finding for each mark, at the place where it moves the score of good images most."""
    detector, good = evidence.detector, evidence.some_good(GOOD)
    tried = [(mark, place) for mark in MARKS for place in PLACES]
    marked = [MARKS[mark](evidence.inputs[i], PLACES[place]) for mark, place in tried for i in good]
    cells = cells_of(detector, [image for image, _ in marked], "planting marks", quiet)
    scores = scores_of(detector, cells).reshape(len(MARKS), len(PLACES), len(good))
    return [_finding(evidence, good, number, scores[number], marked, cells) for number in range(len(MARKS))]


def _finding(
    evidence: Evidence,
    good: NDArray[np.intp],
    number: int,
    scores: NDArray[np.float64],
    marked: list[tuple[Pixels, NDArray[np.bool_]]],
    cells: NDArray[np.float32],
) -> Finding:
    """`scores` (places, good) with mark `number`; `marked` and `cells` are those of all marks, in their order."""
    name, places = list(MARKS)[number], list(PLACES)
    shift = scores - evidence.scores[good]
    worst = int(shift.mean(1).argmax())
    error = LEVEL / (len(MARKS) * len(PLACES))
    low, high = mean_interval(shift[worst], error)
    first = (number * len(PLACES) + worst) * len(good)
    before = evidence.rejected(evidence.scores[good])
    rejected = evidence.rejected(scores[worst]) - before
    on_mark = _share_on_mark(evidence, good, marked[first : first + len(good)], cells[first : first + len(good)])
    smallest = detectable(shift[worst], error) / evidence.gap
    moved = low > 0
    unsure = not moved and smallest > MATTERS
    goes = "goes to the mark" if on_mark >= 0.5 else "does not go to the mark"
    return Finding(
        Question.PLANTED,
        Severity.LOW if moved and rejected > 0 else Severity.UNKNOWN if unsure else Severity.NONE,
        f"{'Too few to say: a' if unsure else 'A'} {name} {places[worst]}",
        f"A {name} {places[worst]} of {len(good)} good images changes their score by {shift[worst].mean():+.2g} "
        f"({shift[worst].mean() / evidence.gap:.0%} of what separates good from anomalous images) and gets "
        f"{max(rejected, 0)} more of them rejected. The added heat {goes} ({on_mark:.0%} of it)."
        + (" That is what a detector of good parts does with foreign things." if moved else ""),
        f"If images of the line may carry a {name}, have some of them among the good ones, or leave its place out "
        "with --ignore. If not, nothing to do.",
        [
            Illustration("a good image with it", evidence.shown(marked[first][0])),
            Illustration("the same under its heat", evidence.shown(marked[first][0], cells[first])),
        ],
        effect=float(shift[worst].mean()) / evidence.gap,
        figures={
            **{f"shift {place}": float(shift[i].mean()) for i, place in enumerate(places)},
            "shift_low": low,
            "shift_high": high,
            "rejected": rejected,
            "heat_on_mark": on_mark,
            "detectable": smallest,
        },
        power=f"With {len(good)} good images, a mark that moves their score by {smallest:.1%} of that gap would be "
        f"noticed {ODDS}; without a shift, this is in order only where {MATTERS:.0%} would be noticed.",
    )


def _share_on_mark(
    evidence: Evidence,
    good: NDArray[np.intp],
    marked: list[tuple[Pixels, NDArray[np.bool_]]],
    cells: NDArray[np.float32],
) -> float:
    """The share of the added heat that lies on the mark or within two cells of it, over all images."""
    added = np.maximum(cells - evidence.cells[good], 0)
    masks = np.stack([_cells_near(mask, cells.shape[1:]) for _, mask in marked])
    return float(added[masks].sum() / max(float(added.sum()), 1e-12))


def _cells_near(mask: NDArray[np.bool_], cells: tuple[int, ...], reach: int = 2) -> NDArray[np.bool_]:
    """Cells (h, w) whose pixels touch the mask (H, W), and those within `reach` of them."""
    rows, columns = (np.linspace(0, n, m + 1).astype(int) for n, m in zip(mask.shape, cells, strict=True))
    touched = np.add.reduceat(np.add.reduceat(mask.astype(int), rows[:-1], 0), columns[:-1], 1) > 0
    return np.asarray(ndimage.binary_dilation(touched, np.ones((2 * reach + 1, 2 * reach + 1))), np.bool_)
