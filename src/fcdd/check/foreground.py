"""Where the parts are, found from good images alone: what differs from a plain background that all images share.

The proposal would rather keep too much than cut off a defect, and there is none where the background is not plain, as
on textures, or where the parts lie nearly everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from fcdd import images
from fcdd.errors import DataError
from fcdd.framing import Frame
from fcdd.reading import ImageLike, pixels, shape_of, threaded
from fcdd.regions import components

SIDE = 128  # pixels of the images that are compared
MOST = 100  # of them, evenly taken
RING = 6  # pixels along the border that are taken for background
MARGIN = 5  # pixels that are kept around the parts
PLAIN = 4.0  # gray levels: the largest spread of a background
SURE = 4.0  # spreads beyond which a pixel is no background, and
LEAST = 6.0  # gray levels, where the spread is tiny
SPECK = 0.001  # share of the image below which something is dust
APART = 2.0  # times that limit by which parts must differ, in nine of ten images
LARGEST = 1024  # pixels of the longer side of the mask
USEFUL = 0.9  # largest share of the image that is worth marking


@dataclass(frozen=True)
class Foreground:
    """Where to look, (H, W) bool in the aspect of the images, and which share of the image that is."""

    mask: NDArray[np.bool_]
    share: float


def propose(given: Sequence[ImageLike]) -> Foreground:
    """The union of where the parts of good images are, with a margin.

    In each image the background is a smooth surface, quadratic in the place, fitted to the image's border; the part is
    all that differs from it by more than SURE of its spreads, and what that encloses.

    Raises:
        DataError: it is not sure that there are parts on a plain background; the message says why.
    """
    some = given[:: -(-len(given) // MOST)]
    height, width = np.median([shape_of(image) for image in some], axis=0)
    frame = Frame(float(height / width), "stretch")
    found = threaded(lambda image: _parts(images.resize(frame.apply(pixels(image)), SIDE)), some)
    parts, spreads, apart = (np.array(one) for one in zip(*found, strict=True))
    if np.median(spreads) > PLAIN:
        raise _unsure(f"the border of the images varies by {np.median(spreads):.0f} gray levels: no background")
    if np.quantile(apart, 0.1) < APART:
        raise _unsure("parts and background differ too little, or there is no part in some images")
    mask = _grown(parts.mean(0) >= min(0.01, 1 / len(some)), MARGIN)
    if mask.mean() > USEFUL:
        raise _unsure(f"the parts lie nearly everywhere, on {100 * mask.mean():.0f} % of the image")
    scale = max(SIDE, min(LARGEST, max(height, width))) / max(height, width)
    shape = (max(1, round(height * scale)), max(1, round(width * scale)))
    large = images.resize(mask.astype(np.uint8) * np.uint8(255), shape) >= 128
    return Foreground(large, float(large.mean()))


def _unsure(reason: str) -> DataError:
    return DataError(f"no region of interest can be proposed: {reason}. Draw one (--roi MASK), or leave it out")


def _parts(image: NDArray[np.uint8]) -> tuple[NDArray[np.bool_], float, float]:
    """Of one image (SIDE, SIDE, 3): where its part is; the spread of the background; and by how many times the limit
    the part differs from it."""
    basis, ring = _surface()
    smooth = _mean3(image.astype(np.float64))
    known, values = basis[ring], smooth[ring]
    kept = np.ones(len(known), np.bool_)
    for _ in range(4):
        surface = np.linalg.lstsq(known[kept], values[kept], rcond=None)[0]
        off = np.sqrt(((values - known @ surface) ** 2).mean(1))
        kept = off <= max(3 * 1.4826 * float(np.median(off)), 3.0)
    spread = 1.2 * float(np.median(off))
    limit = max(SURE * spread, LEAST)
    distance = np.sqrt(((smooth - basis @ surface) ** 2).mean(-1))
    part = _large(~_from_border(distance <= limit))
    apart = float(np.median(distance[part])) / limit if part.any() else 0.0
    return part, spread, apart


@cache
def _surface() -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """1, x, y, x², xy, y² of each pixel (SIDE, SIDE, 6), and which pixels lie at the border."""
    y, x = (np.mgrid[:SIDE, :SIDE] + 0.5) / SIDE - 0.5
    ring = np.ones((SIDE, SIDE), np.bool_)
    ring[RING:-RING, RING:-RING] = False
    return np.stack([np.ones_like(x), x, y, x * x, x * y, y * y], -1), ring


def _mean3(image: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of each pixel's 3 × 3 neighbourhood, (H, W, 3)."""
    padded = np.pad(image, ((1, 1), (1, 1), (0, 0)), "edge")
    height, width = image.shape[:2]
    return np.asarray(sum(padded[i : i + height, j : j + width] for i in range(3) for j in range(3)) / 9)


def _from_border(low: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The pixels of `low` that are connected to the border."""
    labels, _ = components(low)
    edge = np.unique(np.concatenate([labels[0], labels[-1], labels[:, 0], labels[:, -1]]))
    return np.isin(labels, edge[edge > 0])


def _large(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The mask without specks."""
    labels, _ = components(mask)
    area = np.bincount(labels.ravel())
    return mask & (area[labels] >= SPECK * mask.size)


def _grown(mask: NDArray[np.bool_], margin: int) -> NDArray[np.bool_]:
    """All pixels within `margin` pixels of the mask."""
    padded = np.pad(mask, margin)
    height, width = mask.shape
    reach = range(-margin, margin + 1)
    near = [(i, j) for i in reach for j in reach if i * i + j * j <= margin * margin]
    return np.asarray(np.any([padded[margin + i :, margin + j :][:height, :width] for i, j in near], axis=0))
