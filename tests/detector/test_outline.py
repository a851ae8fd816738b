"""No verdict without a place, no place without a verdict: for random cells, any share, any region of interest."""

from __future__ import annotations

import numpy as np
import pytest

from fcdd.detector.outline import outline
from fcdd.detector.result import Grid, score_of
from fcdd.regions import components

GRID = Grid(shape=(96, 128), stride=8, start=3.0, sigma=8.0)
EVERYWHERE = np.ones(GRID.cells, np.bool_)
SIZES = [(96, 128), (480, 300), (10, 9)]


def cells_with(seed: int, spots: int) -> np.ndarray:
    """Usual cells of about 0.3, and some much hotter ones."""
    random = np.random.default_rng(seed)
    cells = random.gamma(3.0, 0.1, GRID.cells).astype(np.float32)
    for _ in range(spots):
        y, x = random.integers(GRID.cells[0]), random.integers(GRID.cells[1])
        cells[y : y + random.integers(1, 4), x : x + random.integers(1, 4)] += random.uniform(0.5, 5)
    return cells


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("top", [0.01, 0.1, 1.0])
def test_without_what_is_outlined_the_image_would_be_ok(size: tuple[int, int], top: float) -> None:
    inside = EVERYWHERE.copy()
    inside[:, :3] = False
    for seed in range(40):
        cells = np.where(inside, cells_with(seed, seed % 4), np.float32(0))
        score, heat = score_of(cells, inside, top), GRID.heatmap(cells, size)
        for limit in (0.999 * score, 0.7 * score):
            level, marked = outline(GRID, cells, heat, inside, top, limit, usual=0.25)
            assert marked.any()
            assert (heat[marked] > level).all()
            assert not (marked & ~GRID.spread(inside, size)).any()
            middle = marked[np.ix_(GRID.pixels(0, size[0]), GRID.pixels(1, size[1]))]
            neutral = np.where(middle, np.minimum(cells, np.float32(0.25)), cells)
            assert score_of(neutral, inside, top) <= max(limit, 0.25 + 1e-6) or middle[inside].all()


def test_a_strong_spot_is_outlined_and_nothing_else() -> None:
    cells = np.full(GRID.cells, 0.2, np.float32)
    cells[4:6, 10:12] = 5.0
    heat = GRID.heatmap(cells, (96, 128))
    _, marked = outline(GRID, cells, heat, EVERYWHERE, 0.02, 0.5, usual=0.2)
    assert components(marked)[1] == 1
    y, x = np.nonzero(marked)
    assert 20 <= y.min() <= 32
    assert 47 <= y.max() <= 60
    assert 68 <= x.min() <= 80
    assert 95 <= x.max() <= 108


def test_a_single_hot_cell_whose_heat_is_smeared_below_the_limit_has_a_place() -> None:
    cells = np.full(GRID.cells, 0.2, np.float32)
    cells[5, 5] = 2.0
    heat = GRID.heatmap(cells, (96, 128))
    assert heat.max() < 1.5
    _, marked = outline(GRID, cells, heat, EVERYWHERE, 0.001, 1.9, usual=0.2)
    assert marked[3 + 40, 3 + 40]
    assert marked.sum() < 600


def test_an_image_all_of_whose_cells_are_hot_is_outlined_whole() -> None:
    cells = np.full(GRID.cells, 3.0, np.float32)
    _, marked = outline(GRID, cells, GRID.heatmap(cells, (50, 60)), EVERYWHERE, 1.0, 0.1, usual=0.2)
    assert marked.all()


def test_specks_that_account_for_nothing_are_left_out() -> None:
    cells = np.full(GRID.cells, 0.2, np.float32)
    cells[3:6, 3:6] = 5.0
    heat = GRID.heatmap(cells, (960, 1280))
    _, before = outline(GRID, cells, heat, EVERYWHERE, 0.01, 0.5, usual=0.2)
    heat[900:903, 1200:1204] = 3.0  # in the middle of no cell
    _, marked = outline(GRID, cells, heat, EVERYWHERE, 0.01, 0.5, usual=0.2)
    assert np.array_equal(marked, before)
