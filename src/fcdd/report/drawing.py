"""An image with its explanation drawn into it: heat, outlines, and a strip below that says what they mean."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from fcdd.detector.calibration import Verdict
from fcdd.report.colours import tinted
from fcdd.report.figures import fit

LINE, HALO = (0, 230, 255), (0, 0, 0)  # readable on any part: a bright line with a dark one around it
BORDER = (255, 255, 255)  # of the region of interest
STRONGEST = 0.5  # opacity of the hottest heat
PAPER, INK, SOFT = (24, 25, 28), (245, 245, 245), (170, 174, 182)
TONES = {Verdict.OK: (0, 128, 95), Verdict.REVIEW: (184, 121, 0), Verdict.NG: (194, 51, 15)}


def words(score: float, limit: float) -> str:
    """A score for people: as a multiple of the score above which a part is rejected."""
    if limit <= 0:
        return f"score {score:.3g}; the reject limit is 0"
    ratio = score / limit
    if round(ratio, 2) == 1:
        return f"just {'above' if ratio > 1 else 'below'} the reject limit"
    digits = 0 if ratio >= 9.95 else 1 if ratio >= 1.995 else 2
    return f"{ratio:.{digits}f} × the reject limit"


def outlined(
    image: NDArray[np.uint8],
    heat: NDArray[np.float32],
    marked: NDArray[np.bool_],
    roi: NDArray[np.bool_] | None = None,
    line: int = 0,
) -> NDArray[np.uint8]:
    """An RGB image (H, W, 3) with its heat (H, W) in [0, 1] as a tint and its `marked` pixels (H, W) outlined.

    Pixels of no more than half the heat stay as they are (see `colours.tinted`). The outline lies outside the marked
    pixels, `line` pixels wide, by default as suits the image's size; a thin white line borders the region of interest
    `roi` (H, W), where there is one.
    """
    shown = tinted(image, heat, STRONGEST)
    if not marked.any() and roi is None:
        return shown
    line = line or max(2, round(max(image.shape[:2]) / 350))
    if roi is not None:
        thin = max(1, line // 2)
        inner = ~_grown(~roi, thin)
        shown[roi & ~inner] = BORDER
        shown[inner & _grown(~inner, thin)] = HALO
    bright = _grown(marked, line)
    shown[_grown(bright, max(1, line // 2)) & ~bright] = HALO
    shown[bright & ~marked] = LINE
    return shown


def captioned(image: NDArray[np.uint8], verdict: Verdict, told: str) -> NDArray[np.uint8]:
    """The image (H, W, 3) with a strip below it: the verdict and what is `told` of the score, and the colours' key."""
    told = told.replace("×", "x")  # the font that comes with Pillow has no ×
    width = image.shape[1]
    size = min(max(width // 24, 11), 32)
    font, gap = ImageFont.load_default(size), size // 2
    strip = Image.new("RGB", (width, 2 * size + 5 * gap), PAPER)
    draw = ImageDraw.Draw(strip)
    tag = round(font.getlength(verdict)) + 2 * gap
    draw.rounded_rectangle((gap, gap // 2, gap + tag, size + 3 * gap // 2), gap // 2, TONES[verdict])
    draw.text((gap + tag / 2, gap + size / 2), verdict, INK, font, anchor="mm")
    left = tag + 2 * gap
    draw.text((left, gap + size / 2), fit(told, font, width - left - gap), INK, font, anchor="lm")
    _key(strip, draw, max(round(0.8 * size), 10), gap, size + 3 * gap)
    return np.concatenate([image, np.asarray(strip)])


def _key(strip: Image.Image, draw: ImageDraw.ImageDraw, size: int, gap: int, top: int) -> None:
    """What the tint and the outline mean, in a line of text of `size` that starts at the height `top`."""
    font = ImageFont.load_default(size)
    height, middle = size, top + size / 2
    names = ("usual", "strong heat", "outline: too hot")
    lengths = [round(font.getlength(name)) for name in names]
    room = strip.width - lengths[0] - lengths[1] - 4 * gap
    if room < 2 * gap:  # a very small image: the verdict alone
        return
    length = min(room, 6 * height)
    x = gap
    draw.text((x, middle), names[0], SOFT, font, anchor="lm")
    x += lengths[0] + gap
    ramp = np.repeat(np.linspace(0.3, 1, length, dtype=np.float32)[None], height, 0)
    grey = np.full((height, length, 3), 128, np.uint8)
    strip.paste(Image.fromarray(outlined(grey, ramp, np.zeros(ramp.shape, np.bool_))), (x, top))
    x += length + gap
    draw.text((x, middle), names[1], SOFT, font, anchor="lm")
    x += lengths[1] + 2 * gap
    if x + height + gap + lengths[2] + gap <= strip.width:
        draw.rectangle((x, top, x + height, top + height), outline=LINE, width=max(2, height // 8))
        draw.text((x + height + gap, middle), names[2], SOFT, font, anchor="lm")


def _grown(mask: NDArray[np.bool_], by: int) -> NDArray[np.bool_]:
    """The mask (H, W) with every True pixel widened to a square of 2·by + 1 pixels."""
    grown = mask.copy()
    for step in range(1, by + 1):
        grown[:, step:] |= mask[:, :-step]
        grown[:, :-step] |= mask[:, step:]
    tall = grown.copy()
    for step in range(1, by + 1):
        tall[step:] |= grown[:-step]
        tall[:-step] |= grown[step:]
    return tall
