"""Connected regions of a heatmap: where the anomaly is, how large, how strong; and how many cells make the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Region:
    """One 8-connected region of outlined pixels, in pixels of the image."""

    x: int  # left column of the bounding box
    y: int  # top row of the bounding box
    width: int
    height: int
    area: int  # pixels
    peak: float  # largest heatmap value inside
    share: float  # of the whole heatmap's sum, in [0, 1]: what part of the mean score this region accounts for


@dataclass(frozen=True)
class _Runs:
    """Horizontal runs of True pixels in raster order; `stop` is exclusive."""

    row: Ints
    start: Ints
    stop: Ints


def components(mask: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.int32], int]:
    """8-connected labelling: mask (H, W) → labels (H, W), 0 outside and 1 … count in raster order, and count."""
    runs = _runs(mask)
    label, count = _label(runs, mask.shape[1])
    labels = np.zeros(mask.shape, np.int32)
    labels[mask] = np.repeat(label + 1, runs.stop - runs.start)
    return labels, count


def regions(heatmap: npt.NDArray[np.float32], mask: npt.NDArray[np.bool_]) -> list[Region]:
    """The connected regions of `mask` (H, W) and the `heatmap` (H, W), ≥ 0, in each, strongest peak first."""
    runs = _runs(mask)
    if not runs.row.size:
        return []
    label, count = _label(runs, mask.shape[1])
    length = runs.stop - runs.start
    values = heatmap[mask].astype(np.float64)
    first = np.cumsum(length) - length
    area = np.bincount(label, length, count).astype(int)
    total = max(float(heatmap.sum(dtype=np.float64)), np.finfo(np.float64).tiny)  # a map that is all zero
    share = np.bincount(label, np.add.reduceat(values, first), count) / total
    peak = _most(label, np.maximum.reduceat(values, first), count)
    left, right = -_most(label, -runs.start, count), _most(label, runs.stop, count)
    top, bottom = -_most(label, -runs.row, count), _most(label, runs.row + 1, count)
    found = [
        Region(
            int(left[i]), int(top[i]), int(right[i] - left[i]), int(bottom[i] - top[i]),
            int(area[i]), float(peak[i]), float(share[i]),
        )
        for i in range(count)
    ]  # fmt: skip
    return sorted(found, key=lambda region: -region.peak)


def _runs(mask: npt.NDArray[np.bool_]) -> _Runs:
    if mask.ndim != 2 or mask.dtype != np.bool_:
        raise ValueError(f"a mask is bool (H, W), got {mask.dtype} {mask.shape}")
    height, width = mask.shape
    edge = np.zeros((height, width + 2), np.bool_)
    edge[:, 1:-1] = mask
    change = np.flatnonzero(edge[:, 1:] != edge[:, :-1])  # start and stop alternate within a row of width + 1
    row, column = np.divmod(change, width + 1)
    return _Runs(row[::2], column[::2], column[1::2])


def _label(runs: _Runs, width: int) -> tuple[Ints, int]:
    """The region of each run (R,), numbered from 0 by first appearance, and how many there are."""
    upper, lower = _neighbours(runs, width)
    root = np.arange(runs.row.size)
    while upper.size:
        np.minimum.at(root, np.maximum(upper, lower), np.minimum(upper, lower))
        while not np.array_equal(above := root[root], root):
            root = above
        upper, lower = root[upper], root[lower]
        apart = upper != lower
        upper, lower = upper[apart], lower[apart]
    _, label = np.unique(root, return_inverse=True)
    return label, int(label.max()) + 1 if label.size else 0


def _neighbours(runs: _Runs, width: int) -> tuple[Ints, Ints]:
    """Pairs (run, run of the row below) that touch, also by a corner: start ≤ other's stop and stop ≥ other's start."""
    stride = width + 1  # positions 0 … width of a row, so that a stop never reaches the next row
    starts, stops = runs.row * stride + runs.start, runs.row * stride + runs.stop
    first = np.searchsorted(stops, starts + stride, side="left")
    last = np.searchsorted(starts, stops + stride, side="right")
    count = np.maximum(last - first, 0)
    upper = np.repeat(np.arange(runs.row.size), count)
    within = np.arange(upper.size) - np.repeat(np.cumsum(count) - count, count)
    return upper, first[upper] + within


def _most(label: Ints, values: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """The largest value of each label."""
    order = np.argsort(label, kind="stable")
    most: npt.NDArray[Any] = np.maximum.reduceat(values[order], np.searchsorted(label[order], np.arange(count)))
    return most


def strongest(cells: int, top: float) -> int:
    """How many of `cells` cells make the score: the share `top` of them, at least one."""
    return max(1, round(top * cells))
