"""The result of one image: the score is its cells, the heat stands where they look, and pixels belong to cells."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from fcdd.detector.calibration import Verdict
from fcdd.detector.result import Grid, Result, score_of
from fcdd.regions import Region

GRID = Grid(shape=(96, 128), stride=8, start=3.0, sigma=8.0)
EVERYWHERE = np.ones(GRID.cells, np.bool_)


def random_cells(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).gamma(1.0, 1.0, GRID.cells).astype(np.float32)


@pytest.mark.parametrize("top", [0.01, 0.1, 1.0])
def test_score_is_the_mean_of_the_strongest_cells(top: float) -> None:
    cells = random_cells()
    strongest = sorted(cells.ravel().tolist(), reverse=True)[: max(1, round(top * cells.size))]
    assert score_of(cells, EVERYWHERE, top) == pytest.approx(sum(strongest) / len(strongest))


def test_score_does_not_ask_where_the_cells_are() -> None:
    cells = random_cells()
    shuffled = np.random.default_rng(1).permutation(cells.ravel()).reshape(cells.shape)
    assert score_of(shuffled, EVERYWHERE, 0.1) == score_of(cells, EVERYWHERE, 0.1)


def test_cells_outside_the_region_of_interest_do_not_matter() -> None:
    cells, inside = random_cells(), EVERYWHERE.copy()
    inside[:, 10:] = False
    elsewhere = np.where(inside, cells, np.float32(1e6))
    assert score_of(elsewhere, inside, 0.1) == score_of(cells, inside, 0.1)
    assert score_of(cells, inside, 0.1) == pytest.approx(score_of(cells[:, :10], EVERYWHERE[:, :10], 0.1))


def test_score_of_few_cells_is_that_of_one_at_least() -> None:
    inside = np.zeros(GRID.cells, np.bool_)
    inside[2, 3] = inside[4, 5] = True
    cells = random_cells()
    assert score_of(cells, inside, 0.01) == max(cells[2, 3], cells[4, 5])


@pytest.mark.parametrize("size", [(96, 128), (192, 256), (480, 300), (61, 77)])
def test_heat_of_a_single_cell_peaks_at_its_centre(size: tuple[int, int]) -> None:
    cells = np.zeros(GRID.cells, np.float32)
    cells[4, 11] = 1.0
    heat = GRID.heatmap(cells, size)
    assert heat.shape == size
    assert heat.dtype == np.float32
    y, x = np.unravel_index(heat.argmax(), size)
    # The centre of input pixel c lies at (c + ½) of 96 or 128 pixel widths, and so at that share of the image.
    assert abs(y + 0.5 - (3 + 4 * 8 + 0.5) * size[0] / 96) <= 0.51
    assert abs(x + 0.5 - (3 + 11 * 8 + 0.5) * size[1] / 128) <= 0.51


def test_heat_is_the_gaussian_mean_of_the_cells() -> None:
    cells, size = random_cells(), (48, 200)
    heat = GRID.heatmap(cells, size)
    for y, x in [(0, 0), (20, 150), (47, 199), (31, 4)]:
        v, u = (y + 0.5) * 96 / size[0] - 0.5, (x + 0.5) * 128 / size[1] - 0.5
        total = weights = 0.0
        for i in range(GRID.cells[0]):
            for j in range(GRID.cells[1]):
                weight = math.exp(-((v - 3 - 8 * i) ** 2 + (u - 3 - 8 * j) ** 2) / (2 * 8.0**2))
                total, weights = total + weight * float(cells[i, j]), weights + weight
        assert heat[y, x] == pytest.approx(total / weights, rel=1e-5)


@pytest.mark.parametrize("size", [(96, 128), (33, 500)])
def test_constant_cells_give_constant_heat(size: tuple[int, int]) -> None:
    heat = GRID.heatmap(np.full(GRID.cells, 0.7, np.float32), size)
    assert np.allclose(heat, 0.7, rtol=1e-6)


def test_heat_stays_within_the_cells_and_keeps_their_order_of_strength() -> None:
    cells = random_cells()
    heat = GRID.heatmap(cells, (96, 128))
    assert cells.min() <= heat.min() <= heat.max() <= cells.max()
    assert np.allclose(GRID.heatmap(3 * cells, (96, 128)), 3 * heat, rtol=1e-5)


def test_no_mask_means_everywhere() -> None:
    assert GRID.inside(None).shape == GRID.cells
    assert GRID.inside(None).all()


@pytest.mark.parametrize("scale", [0.25, 1, 3])
def test_a_mask_of_another_size_covers_the_same_cells(scale: float) -> None:
    mask = np.zeros((int(96 * scale), int(128 * scale)), np.bool_)
    mask[int(32 * scale) : int(64 * scale), int(96 * scale) :] = True
    expected = np.zeros(GRID.cells, np.bool_)
    expected[4:8, 12:] = True
    assert np.array_equal(GRID.inside(mask), expected)


def test_a_cell_is_inside_where_half_of_its_pixels_are() -> None:
    """A disc on a mask whose pixels do not fit the cells, counted on a grid fine enough for both."""
    rows, columns = 50, 70
    y, x = np.mgrid[:rows, :columns]
    mask = (y - 22.3) ** 2 + (x - 40.1) ** 2 < 17.7**2
    fine = mask.repeat(96, 0).repeat(128, 1).reshape(GRID.cells[0], -1, GRID.cells[1], 128 * columns // GRID.cells[1])
    share = fine.mean((1, 3))
    assert (abs(share - 0.5) > 1e-6).all()
    assert np.array_equal(GRID.inside(mask), share > 0.5)
    assert 0 < GRID.inside(mask).sum() < GRID.inside(None).sum()


@pytest.mark.parametrize("size", [(96, 128), (300, 200), (7, 9)])
def test_every_cell_inside_has_a_pixel_and_no_other_has(size: tuple[int, int]) -> None:
    inside = np.zeros(GRID.cells, np.bool_)
    inside[2:5, 3:9] = True
    pixels = GRID.spread(inside, size)
    assert pixels.shape == size
    y, x = np.nonzero(inside)
    assert pixels[GRID.pixels(0, size[0])[y], GRID.pixels(1, size[1])[x]].all()
    if size[0] >= GRID.cells[0]:
        rows, columns = (np.arange(n) * c // n for n, c in zip(size, GRID.cells, strict=True))
        assert abs(pixels.sum() - inside[np.ix_(rows, columns)].sum()) <= 0.2 * pixels.sum()
    assert GRID.spread(np.ones(GRID.cells, np.bool_), size).all()


def test_the_numbers_survive_json() -> None:
    region = Region(x=1, y=2, width=3, height=4, area=10, peak=0.5, share=0.25)
    zeros = np.zeros((2, 2), np.float32)
    result = Result(0.75, 0.125, Verdict.NG, heatmap=zeros, regions=[region], cells=zeros, marked=zeros > 0, level=0.5)
    told = json.loads(json.dumps(result.to_dict()))
    assert told.pop("regions") == [vars(region)]
    assert told == {"score": 0.75, "p_value": 0.125, "verdict": "NG"}
