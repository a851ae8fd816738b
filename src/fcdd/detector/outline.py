"""Which places account for a verdict: an image that is not OK has an outline, one that is OK has none.

The outline runs at one heat, the image's level. It is the highest heat for which this holds: if every cell inside the
outline looked as cells of good parts usually do, the image would be OK. So there is no verdict without a place, and
no place without a verdict, whatever share of the cells makes the score.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fcdd.detector.result import Grid, score_of
from fcdd.detector.thresholds import TIE
from fcdd.regions import components

CONTRAST = 0.7  # the outline runs no higher than this share of the way from usual heat to the image's hottest place
SPECK = 1e-4  # share of the image below which a region that accounts for nothing is left out


def accounting(
    cells: NDArray[np.float32],
    inside: NDArray[np.bool_],
    top: float,
    limit: float,
    usual: float,
    order: NDArray[np.intp],
) -> int:
    """How many of the cells (h, w), taken in `order` of the flattened grid, must look as usual for the score to be at
    most `limit`; all where even that is not enough."""
    flat = cells.ravel()

    def enough(count: int) -> bool:
        changed = flat.copy()
        changed[order[:count]] = np.minimum(changed[order[:count]], np.float32(usual))
        return score_of(changed.reshape(cells.shape), inside, top) <= limit

    low, high = 0, len(order)  # not enough, and enough or all
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def outline(
    grid: Grid,
    cells: NDArray[np.float32],
    heatmap: NDArray[np.float32],
    inside: NDArray[np.bool_],
    top: float,
    limit: float,
    usual: float,
) -> tuple[float, NDArray[np.bool_]]:
    """The level of an image whose score is above `limit`, and its outlined pixels (H, W), at least one.

    Args:
        cells: (h, w) ≥ 0, and `heatmap` (H, W) what the grid makes of them.
        inside: the cells of the region of interest; nothing outside it is outlined.
        top: the share of the cells whose mean is the score.
        limit: the score up to which an image is OK.
        usual: what cells of good parts usually have.
    """
    rows, columns = grid.pixels(0, heatmap.shape[0]), grid.pixels(1, heatmap.shape[1])
    felt = heatmap[np.ix_(rows, columns)].ravel()  # the heat in the middle of each cell
    order = np.flatnonzero(inside)
    order = order[np.argsort(-felt[order], kind="stable")]
    needed = accounting(cells, inside, top, limit, usual, order)
    last = float(felt[order[needed - 1]])
    cooler = felt[order][felt[order] < last * (1 - TIE)]
    # Midway, so that it sits on no cell's heat and is the same in every batch and runtime.
    level = (last + float(cooler[0] if len(cooler) else 0)) / 2
    seen = grid.spread(inside, heatmap.shape)
    level = min(level, usual + CONTRAST * (float(heatmap[seen].max()) - usual))
    marked = seen & (heatmap > level)
    needful = np.zeros_like(marked)
    places = order[felt[order] > level]
    needful[rows[places // grid.cells[1]], columns[places % grid.cells[1]]] = True
    return level, _without_specks(marked, needful)


def _without_specks(marked: NDArray[np.bool_], needful: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The mask without its specks, but for those that hold a `needful` pixel."""
    labels, count = components(marked)
    area = np.bincount(labels.ravel(), minlength=count + 1)
    kept = area >= max(1, math.ceil(marked.size * SPECK))
    kept[labels[needful]] = True
    kept[0] = False
    return np.asarray(kept[labels])
