"""What a detector says of one image. Needs numpy alone: torch and the exported model give the same `Result`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcdd.detector.calibration import Verdict
from fcdd.regions import Region, strongest


@dataclass(frozen=True)
class Result:
    """A verdict with its explanation.

    `score` is a function of `cells` alone: the mean of the largest share of them (see `score_of`). `heatmap` shows
    the same cells at the image's own size and pixel grid. `marked` are the pixels that account for the verdict, those
    hotter than `level` (see `fcdd.detector.outline`), and `regions` their connected parts: at least one where the
    verdict is REVIEW or NG, none where it is OK.
    """

    score: float
    p_value: float
    verdict: Verdict
    heatmap: NDArray[np.float32]  # (H, W) ≥ 0
    regions: list[Region]
    cells: NDArray[np.float32]  # (h, w) ≥ 0
    marked: NDArray[np.bool_]  # (H, W)
    level: float  # ≥ 0; of an image that is OK, a heat that it nowhere exceeds
    looks: NDArray[np.float64] | None = None  # traits of the image as a whole, see fcdd.detector.looks

    def to_dict(self) -> dict[str, Any]:
        """The numbers for JSON; maps are left out."""
        return {
            "score": self.score,
            "p_value": self.p_value,
            "verdict": str(self.verdict),
            "regions": [asdict(region) for region in self.regions],
        }


def score_of(cells: NDArray[np.float32], inside: NDArray[np.bool_], top: float) -> float:
    """The mean of the largest `top` share of the cells (h, w) inside the region of interest, at least of one.

    The plain mean of the paper ranks small defects low: hundreds of good cells outweigh three bad ones.
    """
    values = np.sort(cells[inside])[::-1]
    return float(values[: strongest(len(values), top)].mean(dtype=np.float64))


@dataclass(frozen=True)
class Grid:
    """Where cells lie on an image: the centre of the first in pixels of the network's input, and the stride."""

    shape: tuple[int, int]  # height and width of the network's input
    stride: int
    start: float
    sigma: float  # of the Gaussian that shows a cell, in pixels of the input

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Grid:
        """What `dataclasses.asdict` gave, also by way of JSON."""
        return Grid(**{**values, "shape": tuple(values["shape"])})

    @property
    def cells(self) -> tuple[int, int]:
        return self.shape[0] // self.stride, self.shape[1] // self.stride

    def centres(self, axis: int) -> NDArray[np.float64]:
        """Where the cells' Gaussians lie along an axis of the input, (cells,)."""
        places = self.start + self.stride * np.arange(self.cells[axis], dtype=np.float64)
        return np.clip(places, 0, self.shape[axis] - 1)

    def heatmap(self, cells: NDArray[np.float32], size: tuple[int, int]) -> NDArray[np.float32]:
        """Cells (h, w) → heat (H, W) on the pixels of an image of `size`: each pixel the Gaussian mean of the cells.

        Algorithm 1 of the paper with its weights made to add up to one at each pixel, so that heat has the unit of
        the cells and does not fade towards the border.
        """
        rows, columns = _gaussians(self, 0, size[0]), _gaussians(self, 1, size[1])
        return np.asarray(rows @ (cells @ columns.T), np.float32)

    def inside(self, mask: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        """Cells (h, w) at least half of whose pixels lie in `mask` (H, W), of any size; all where there is none."""
        if mask is None:
            return np.ones(self.cells, np.bool_)
        rows = _areas(mask.shape[0], self.cells[0])
        columns = _areas(mask.shape[1], self.cells[1])
        return np.asarray(rows @ mask @ columns.T >= 0.5 - 1e-9, np.bool_)

    def pixels(self, axis: int, count: int) -> NDArray[np.intp]:
        """The pixel in the middle of each cell's area (cells,), along an axis of an image of `count` pixels."""
        return np.asarray((np.arange(self.cells[axis]) + 0.5) * count / self.cells[axis], np.intp)

    def spread(self, inside: NDArray[np.bool_], size: tuple[int, int]) -> NDArray[np.bool_]:
        """The pixels (H, W) of an image of `size` that belong to the cells `inside` (h, w), at least one each."""
        rows, columns = (
            np.minimum((np.arange(size[axis]) + 0.5) * self.cells[axis] / size[axis], self.cells[axis] - 1).astype(int)
            for axis in (0, 1)
        )
        pixels: NDArray[np.bool_] = inside[np.ix_(rows, columns)]
        y, x = np.nonzero(inside)
        pixels[self.pixels(0, size[0])[y], self.pixels(1, size[1])[x]] = True
        return pixels


@lru_cache(maxsize=16)
def _gaussians(grid: Grid, axis: int, pixels: int) -> NDArray[np.float32]:
    """(pixels, cells): the weight of each cell at each pixel of an axis; rows add up to one."""
    # Pixel p of the image covers the same place as this coordinate of the resized input.
    places = (np.arange(pixels) + 0.5) * grid.shape[axis] / pixels - 0.5
    distance = places[:, None] - grid.centres(axis)
    density = np.exp(-(distance**2) / (2 * grid.sigma**2)) + 1e-30
    return np.asarray(density / density.sum(1, keepdims=True), np.float32)


def _areas(pixels: int, cells: int) -> NDArray[np.float64]:
    """(cells, pixels): the share of each cell that each pixel covers."""
    edges = np.arange(cells + 1) * pixels / cells
    place = np.arange(pixels)
    cover = np.minimum(edges[1:, None], place + 1) - np.maximum(edges[:-1, None], place)
    return np.asarray(np.maximum(cover, 0) * cells / pixels)
