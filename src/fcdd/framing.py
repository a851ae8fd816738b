"""Images of another aspect than those a model was trained on: refused, or brought to it in a way that was chosen.

Squeezed to the network's input, a wide image of a square part would show an oval that no good part is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from fcdd.errors import ImageError

Fit = Literal["crop", "pad", "stretch"]
FITS: tuple[Fit, ...] = get_args(Fit)
TOLERANCE = 0.02  # relative difference of an aspect that is stretched without a word
REMEDY = "Take images as in training, or choose how to fit them with --fit crop, pad or stretch"
P = TypeVar("P", bound=np.generic)


class Box(NamedTuple):
    """The part of the plane that is looked at, in pixels of the image; it may reach beyond the image."""

    top: int
    left: int
    height: int
    width: int


@dataclass(frozen=True)
class Frame:
    """How images are brought to one aspect, height / width; None where it is not known, and nothing is done.

    "crop" keeps the middle and cuts off the rest, "pad" repeats the border around the image, "stretch" squeezes it;
    without a choice such an image is refused.
    """

    aspect: float | None = None
    fit: Fit | None = None

    def fits(self, size: tuple[int, int]) -> bool:
        """Whether an image of `size` (H, W) has the aspect, within the tolerance."""
        return self.aspect is None or abs(size[0] / size[1] / self.aspect - 1) <= TOLERANCE

    def check(self, size: tuple[int, int], name: str | Path) -> None:
        """ImageError where an image of `size` (H, W) has another aspect and nothing says what to do about it."""
        if self.fit is None and not self.fits(size):
            assert self.aspect is not None
            usual = f"{1 / self.aspect:.3g} : 1" if self.aspect <= 1 else f"1 : {self.aspect:.3g}"
            raise ImageError(
                name, f"{size[1]} × {size[0]} pixels, while the model knows images of {usual} (width : height)", REMEDY
            )

    def box(self, size: tuple[int, int]) -> Box:
        """What is looked at of an image of `size` (H, W): all of it, unless it is to be cropped or padded."""
        height, width = size
        if self.aspect is None or self.fit in (None, "stretch") or self.fits(size):
            return Box(0, 0, height, width)
        if (height > width * self.aspect) == (self.fit == "crop"):
            height = max(1, round(width * self.aspect))
        else:
            width = max(1, round(height / self.aspect))
        return Box((size[0] - height) // 2, (size[1] - width) // 2, height, width)

    def apply(self, pixels: NDArray[P]) -> NDArray[P]:
        """(H, W, …) → what is looked at of it."""
        height, width = pixels.shape[:2]
        box = self.box((height, width))
        if box == (0, 0, height, width):
            return pixels
        rows = np.clip(np.arange(box.top, box.top + box.height), 0, height - 1)
        columns = np.clip(np.arange(box.left, box.left + box.width), 0, width - 1)
        return np.ascontiguousarray(pixels[rows[:, None], columns])

    def back(self, seen: NDArray[P], size: tuple[int, int]) -> NDArray[P]:
        """A map of what is looked at → the map (H, W) of the image of `size`: zero where nobody looked."""
        box = self.box(size)
        if box == (0, 0, *size):
            return seen
        found = np.zeros(size, seen.dtype)
        of_image, of_box = zip(
            *(_overlap(o, n, s) for o, n, s in zip(box[:2], box[2:], size, strict=True)), strict=True
        )
        found[of_image] = seen[of_box]
        return found

    def covered(self, size: tuple[int, int], shape: tuple[int, int]) -> NDArray[np.bool_] | None:
        """Which places of what is looked at, at the scale of `shape` (h, w), show the image and not its padding; None
        for all."""
        box = self.box(size)
        if self.fit != "pad" or box == (0, 0, *size):
            return None
        lit: list[NDArray[Any]] = []
        for offset, length, side, places in zip(box[:2], box[2:], size, shape, strict=True):
            at = offset + (np.arange(places) + 0.5) * length / places
            lit.append((at >= 0) & (at <= side))
        return np.asarray(lit[0][:, None] & lit[1])


def _overlap(offset: int, length: int, side: int) -> tuple[slice, slice]:
    """Where the box and the image overlap along an axis, in pixels of the image and of the box."""
    low, high = max(0, offset), min(side, offset + length)
    return slice(low, high), slice(low - offset, high - offset)
