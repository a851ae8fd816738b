"""From one grid of cells or pixels to another: linear along each axis, so one small matrix an axis."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fcdd.nn.fields import Field

Matrix = NDArray[np.float32]


@lru_cache(maxsize=64)
def grid_matrix(source: Field, source_cells: int, target: Field, cells: int) -> Matrix:
    """(cells, source_cells): brings one grid of cells to another by the centres of their fields."""
    return _between(source.centres(source_cells), target.centres(cells), max(source.stride, target.stride))


@lru_cache(maxsize=16)
def shrink_matrix(pixels: int, fewer: int) -> Matrix:
    """(fewer, pixels): an axis of an image with fewer pixels, each a triangular mean of those that it covers."""
    ratio = pixels / fewer
    return _between(np.arange(pixels), (np.arange(fewer) + 0.5) * ratio - 0.5, max(1.0, ratio))


@lru_cache(maxsize=16)
def enlarge_matrix(field: Field, fewer: int, pixels: int) -> Matrix:
    """(cells, fewer cells): from the cells of an axis of `fewer` pixels to those of the same axis of `pixels`."""
    ratio = pixels / fewer
    known = (np.array(field.centres(fewer // field.stride)) + 0.5) * ratio - 0.5
    return _between(known, field.centres(pixels // field.stride), field.stride * max(1.0, ratio))


@lru_cache(maxsize=16)
def neighbour_mean(cells: int) -> Matrix:
    """(cells, cells): the mean of each cell and its neighbours along one axis, fewer of them at the border."""
    near = np.abs(np.subtract.outer(np.arange(cells), np.arange(cells))) <= 1
    return np.asarray(near / near.sum(1, keepdims=True), np.float32)


def _between(known: ArrayLike, wanted: ArrayLike, wide: float) -> Matrix:
    """(wanted, known): a triangle of half-width `wide` around each wanted place; rows add up to one.

    As wide as the coarser stride, it is linear interpolation towards a finer grid and a smooth mean towards a coarser
    one. Beyond the outermost known places their value goes on, as a reflecting border would have it.
    """
    places = np.asarray(known, np.float64)
    weight = np.maximum(1 - np.abs(np.clip(wanted, places[0], places[-1])[:, None] - places) / wide, 0)
    return np.asarray(weight / weight.sum(1, keepdims=True), np.float32)
