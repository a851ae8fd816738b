"""What a mark alone does: text, a time stamp and a sticker, put into good pictures at several places.

A detector of good parts should find foreign things, so a score that moves is no fault by itself. The answer says how
far such a mark would carry a good part, and whether the heat goes to the mark, as it must if heat explains the score.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from .chance import LEVEL, mean_interval
from .evidence import Evidence, Pixels, cells_of, scores_of
from .findings import Finding, Picture, Question, Severity

GOOD = 10  # pictures each mark is tried on
FINE = 4  # times the picture's resolution at which marks are drawn
# Left and top as fractions of what the mark leaves free.
PLACES = {"at the lower left": (0.04, 0.96), "at the upper right": (0.96, 0.04), "in the middle": (0.5, 0.5)}


def text(picture: Pixels, place: tuple[float, float]) -> tuple[Pixels, NDArray[np.bool_]]:
    """A watermark: two lines of half-transparent white."""
    return _written(picture, place, "© picture archive\nwww.example.org", (255, 255, 255), 0.6)


def stamp(picture: Pixels, place: tuple[float, float]) -> tuple[Pixels, NDArray[np.bool_]]:
    """A camera's time stamp: one line of opaque yellow."""
    return _written(picture, place, "2024-05-17 11:42", (255, 210, 60), 1.0)


def sticker(picture: Pixels, place: tuple[float, float]) -> tuple[Pixels, NDArray[np.bool_]]:
    """A round white label of a tenth of the picture's side."""
    side = max(6, round(0.1 * min(picture.shape[:2])))
    disc = Image.new("L", (side * FINE, side * FINE))
    ImageDraw.Draw(disc).ellipse((0, 0, side * FINE - 1, side * FINE - 1), 255)
    return _laid(picture, place, disc.resize((side, side), Image.Resampling.BOX), (240, 240, 235), 1.0)


MARKS = {"watermark": text, "time stamp": stamp, "sticker": sticker}


def _written(
    picture: Pixels, place: tuple[float, float], words: str, colour: tuple[int, int, int], opacity: float
) -> tuple[Pixels, NDArray[np.bool_]]:
    font = ImageFont.load_default(FINE * max(7, round(0.036 * max(picture.shape[:2]))))
    left, top, right, bottom = ImageDraw.Draw(Image.new("L", (1, 1))).multiline_textbbox((0, 0), words, font)
    layer = Image.new("L", (round(right - left) + 2, round(bottom - top) + 2))
    ImageDraw.Draw(layer).multiline_text((1 - left, 1 - top), words, 255, font)
    fitted = (min(layer.width // FINE, picture.shape[1]), min(layer.height // FINE, picture.shape[0]))
    return _laid(picture, place, layer.resize(fitted, Image.Resampling.BOX), colour, opacity)


def _laid(
    picture: Pixels, place: tuple[float, float], layer: Image.Image, colour: tuple[int, int, int], opacity: float
) -> tuple[Pixels, NDArray[np.bool_]]:
    """The picture with the layer (grey = how much of the colour shows), and the mask (H, W) of the layer's box."""
    height, width = picture.shape[:2]
    left, top = (round(f * (n - m)) for f, n, m in zip(place, (width, height), layer.size, strict=True))
    box = slice(top, top + layer.height), slice(left, left + layer.width)
    alpha = np.asarray(layer, np.float32)[..., None] / 255 * opacity
    result, mask = picture.copy(), np.zeros((height, width), np.bool_)
    result[box] = np.round((1 - alpha) * picture[box] + alpha * np.array(colour, np.float32))
    mask[box] = True
    return result, mask


def answer(evidence: Evidence, quiet: bool) -> list[Finding]:
    """One finding for each mark."""
    detector, good = evidence.detector, evidence.some_good(GOOD)
    tried = [(mark, place) for mark in MARKS for place in PLACES]
    marked = [MARKS[mark](evidence.inputs[i], PLACES[place]) for mark, place in tried for i in good]
    cells = cells_of(detector, [picture for picture, _ in marked], "planting marks", quiet)
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
    low, high = mean_interval(shift[worst], LEVEL / (len(MARKS) * len(PLACES)))
    first = (number * len(PLACES) + worst) * len(good)
    before = evidence.rejected(evidence.scores[good])
    rejected = evidence.rejected(scores[worst]) - before
    on_mark = _share_on_mark(evidence, good, marked[first : first + len(good)], cells[first : first + len(good)])
    moved = low > 0
    goes = "goes to the mark" if on_mark >= 0.5 else "does not go to the mark"
    return Finding(
        Question.PLANTED,
        Severity.LOW if moved and rejected > 0 else Severity.NONE,
        f"A {name} {places[worst]}",
        f"A {name} {places[worst]} of {len(good)} good pictures changes their score by {shift[worst].mean():+.2g} "
        f"({shift[worst].mean() / evidence.gap:.0%} of what separates good from anomalous pictures) and gets "
        f"{max(rejected, 0)} more of them rejected. The added heat {goes} ({on_mark:.0%} of it)."
        + (" That is what a detector of good parts does with foreign things." if moved else ""),
        f"If pictures of the line may carry a {name}, have some of them among the good ones, or leave its place out "
        "with --ignore. If not, nothing to do.",
        [
            Picture("a good picture with it", evidence.shown(marked[first][0])),
            Picture("the same under its heat", evidence.shown(marked[first][0], cells[first])),
        ],
        effect=float(shift[worst].mean()) / evidence.gap,
        figures={
            **{f"shift {place}": float(shift[i].mean()) for i, place in enumerate(places)},
            "shift_low": low,
            "shift_high": high,
            "rejected": rejected,
            "heat_on_mark": on_mark,
        },
    )


def _share_on_mark(
    evidence: Evidence,
    good: NDArray[np.intp],
    marked: list[tuple[Pixels, NDArray[np.bool_]]],
    cells: NDArray[np.float32],
) -> float:
    """The share of the added heat that lies on the mark or within two cells of it, over all pictures."""
    added = np.maximum(cells - evidence.cells[good], 0)
    masks = np.stack([_cells_near(mask, cells.shape[1:]) for _, mask in marked])
    return float(added[masks].sum() / max(float(added.sum()), 1e-12))


def _cells_near(mask: NDArray[np.bool_], cells: tuple[int, ...], reach: int = 2) -> NDArray[np.bool_]:
    """Cells (h, w) whose pixels touch the mask (H, W), and those within `reach` of them."""
    height, width = cells
    rows, columns = (np.linspace(0, n, m + 1).astype(int) for n, m in zip(mask.shape, cells, strict=True))
    touched = np.add.reduceat(np.add.reduceat(mask.astype(int), rows[:-1], 0), columns[:-1], 1) > 0
    grown = np.zeros((height + 2 * reach, width + 2 * reach), np.bool_)
    for dy in range(2 * reach + 1):
        for dx in range(2 * reach + 1):
            grown[dy : dy + height, dx : dx + width] |= touched
    return grown[reach : reach + height, reach : reach + width]
