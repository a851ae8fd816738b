"""Labelling against scipy.ndimage, regions against per-region loops."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy import ndimage

from fcdd.regions import Region, components, regions

EIGHT = np.ones((3, 3))


@pytest.mark.parametrize("shape", [(1, 1), (1, 17), (23, 1), (40, 61), (128, 128)])
@pytest.mark.parametrize("density", [0.0, 0.05, 0.3, 0.5, 0.8, 1.0])
def test_same_labels_as_scipy(shape: tuple[int, int], density: float) -> None:
    rng = np.random.default_rng(hash((shape, density)) % 2**32)
    for _ in range(5):
        mask = rng.random(shape) < density
        labels, count = components(mask)
        expected, expected_count = ndimage.label(mask, EIGHT)
        assert count == expected_count
        assert labels.dtype == np.int32
        np.testing.assert_array_equal(labels, expected)


def test_shapes_that_need_several_rounds_of_merging() -> None:
    spiral = np.zeros((41, 41), bool)
    y, x, step = 0, 0, 40
    for turn, (dy, dx) in enumerate([(0, 1), (1, 0), (0, -1), (-1, 0)] * 10):
        length = step - 2 * (turn // 2) if turn else step
        if length <= 0:
            break
        for _ in range(length):
            spiral[y, x] = True
            y, x = y + dy, x + dx
    comb = np.zeros((30, 61), bool)
    comb[:, ::2] = True
    comb[-1] = True
    checkerboard = np.indices((20, 20)).sum(0) % 2 == 0
    for mask in (spiral, comb, checkerboard, comb[::-1], comb.T):
        labels, count = components(mask)
        expected, expected_count = ndimage.label(mask, EIGHT)
        assert count == expected_count
        np.testing.assert_array_equal(labels, expected)


def test_not_a_mask() -> None:
    with pytest.raises(ValueError, match="bool"):
        components(np.zeros((3, 3), np.uint8))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="bool"):
        components(np.zeros(3, np.bool_))


def test_quick_on_a_megapixel() -> None:
    mask = ndimage.gaussian_filter(np.random.default_rng(0).random((1000, 1000)), 4) > 0.5
    components(mask)
    started = time.perf_counter()
    components(mask)
    assert time.perf_counter() - started < 0.25  # about 0.01 s on an idle core


def test_regions_agree_with_a_loop_over_scipy_labels() -> None:
    rng = np.random.default_rng(1)
    heatmap = ndimage.gaussian_filter(rng.random((90, 120)), 3).astype(np.float32)
    threshold = float(np.quantile(heatmap, 0.85))
    labels, count = ndimage.label(heatmap > threshold, EIGHT)
    expected = []
    for i, (rows, columns) in enumerate(ndimage.find_objects(labels), start=1):
        inside = heatmap[labels == i].astype(np.float64)
        expected.append((columns.start, rows.start, columns.stop - columns.start, rows.stop - rows.start,
                         inside.size, inside.max(), inside.sum() / heatmap.sum(dtype=np.float64)))  # fmt: skip
    found = regions(heatmap, heatmap > threshold)
    assert len(found) == count > 5
    for region, row in zip(found, sorted(expected, key=lambda row: -row[5]), strict=True):
        assert (region.x, region.y, region.width, region.height, region.area) == row[:5]
        assert (region.peak, region.share) == pytest.approx(row[5:])


def test_small_cases() -> None:
    heatmap = np.zeros((4, 6), np.float32)
    assert regions(heatmap, heatmap > 0.0) == []
    assert regions(heatmap, heatmap > -1.0) == [Region(0, 0, 6, 4, 24, 0.0, 0.0)]
    heatmap[1, 2], heatmap[2, 3], heatmap[0, 5] = 3, 5, 2
    assert regions(heatmap, heatmap > 1.0) == [Region(2, 1, 2, 2, 2, 5.0, 0.8), Region(5, 0, 1, 1, 1, 2.0, 0.2)]
