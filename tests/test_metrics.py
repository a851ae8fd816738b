"""Every metric against scikit-learn or a plain loop over thresholds."""

from __future__ import annotations

import time
from statistics import NormalDist

import numpy as np
import pytest
from scipy import ndimage
from sklearn import metrics as oracle

from fcdd.metrics import Aupro, PixelHistogram, PixelMean, auroc, auroc_interval, best_f1, rank

Images = list[tuple[np.ndarray, np.ndarray]]


def images(count: int, size: int, seed: int = 0) -> Images:
    """Heavy-tailed scores, three quarters of the images with two brighter regions."""
    rng = np.random.default_rng(seed)
    made = []
    for i in range(count):
        scores = rng.standard_normal((size, size), dtype=np.float32) ** 2
        mask = np.zeros((size, size), bool)
        if i % 4:
            y, x = rng.integers(0, size // 2, 2)
            mask[y : y + size // 6, x : x + size // 4] = True
            mask[-size // 9 :, : size // 8] = True
            scores[mask] *= 3
        made.append((scores, mask))
    return made


def pooled(data: Images) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate([s.ravel() for s, _ in data]), np.concatenate([m.ravel() for _, m in data])


@pytest.fixture(scope="module")
def data() -> Images:
    return images(12, 300)


@pytest.fixture(scope="module")
def histogram(data: Images) -> PixelHistogram:
    made = PixelHistogram()
    for scores, mask in data:
        made.update(scores, mask)
    return made


@pytest.mark.parametrize("levels", [2, 5, 10**6])
def test_image_metrics_against_scikit_learn(levels: int) -> None:
    rng = np.random.default_rng(levels)
    for size in (4, 15, 200):
        labels = np.arange(size) % 3 == 0
        scores = rng.integers(0, levels, size) / levels + 0.2 * labels
        assert auroc(scores, labels) == pytest.approx(oracle.roc_auc_score(labels, scores), abs=1e-12)
        expected = oracle.average_precision_score(labels, scores)
        assert rank(scores, labels).average_precision() == pytest.approx(expected, abs=1e-12)
        best = max(oracle.f1_score(labels, scores >= t) for t in scores)
        value, threshold = best_f1(scores, labels)
        assert value == pytest.approx(best, abs=1e-12)
        assert oracle.f1_score(labels, scores > threshold) == pytest.approx(best, abs=1e-12)


def test_auroc_edge_cases() -> None:
    assert auroc([1, 2, 3, 4], [0, 0, 1, 1]) == 1.0
    assert auroc([1, 1, 1], [0, 1, 1]) == 0.5
    assert np.isnan(auroc([1, 2], [1, 1]))
    assert np.isnan(auroc([], []))
    assert np.isnan(rank([1, 2], [0, 0]).average_precision())
    with pytest.raises(ValueError, match="NaN"):
        auroc([1, float("nan")], [0, 1])
    with pytest.raises(ValueError, match="2 scores but 3 labels"):
        auroc([1, 2], [0, 1, 1])


def test_best_f1_threshold_separates_adjacent_floats() -> None:
    low = 1.0
    high = float(np.nextafter(low, 2))
    value, threshold = best_f1([low, high], [0, 1])
    assert value == 1.0
    assert low <= threshold < high


def test_pixel_histogram_against_scikit_learn(data: Images, histogram: PixelHistogram) -> None:
    scores, mask = pooled(data)
    assert histogram.auroc() == pytest.approx(oracle.roc_auc_score(mask, scores), abs=3e-7)
    ranking = histogram.ranking()
    assert ranking.average_precision() == pytest.approx(oracle.average_precision_score(mask, scores), abs=1e-3)
    precision, recall, _ = oracle.precision_recall_curve(mask, scores)
    value, threshold = ranking.best_f1()
    best = np.max(2 * precision * recall / np.maximum(precision + recall, 1e-9))
    assert value == pytest.approx(best, abs=1e-4)
    assert oracle.f1_score(mask, scores > threshold) == pytest.approx(value, abs=1e-12)


def test_pixel_histogram_ignores_layout(data: Images, histogram: PixelHistogram) -> None:
    other = PixelHistogram()
    other.update(np.stack([s for s, _ in data[:5]]), np.stack([m for _, m in data[:5]]))
    for scores, mask in data[5:]:
        other.update(scores.T, mask.T)
    assert other.auroc() == histogram.auroc()


@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1.0, 1e20])
def test_pixel_auroc_does_not_depend_on_the_scale(scale: float) -> None:
    (scores, mask), *_ = images(2, 200, seed=5)[1:]
    histogram = PixelHistogram()
    histogram.update(scores * np.float32(scale), mask)
    assert histogram.auroc() == pytest.approx(oracle.roc_auc_score(mask.ravel(), scores.ravel()), abs=2e-6)


def test_pixel_histogram_refuses_bad_scores() -> None:
    histogram, mask = PixelHistogram(), np.zeros(3, bool)
    for bad in (-1.0, np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="finite and not negative"):
            histogram.update(np.array([0, bad, 1], np.float32), mask)
    with pytest.raises(ValueError, match="mask"):
        histogram.update(np.zeros(4, np.float32), mask)
    with pytest.raises(ValueError, match="mask"):
        histogram.update(np.zeros(3, np.float32), mask.astype(np.uint8))  # type: ignore[arg-type]
    assert np.isnan(histogram.auroc())
    histogram.update(np.array([-0.0, 0.0, np.finfo(np.float32).max], np.float32), np.array([True, False, True]))
    assert histogram.auroc() == 0.75


def test_pixel_histogram_is_quick() -> None:
    (scores, mask), *_ = images(2, 1000)[1:]
    histogram = PixelHistogram()
    histogram.update(scores, mask)
    started = time.perf_counter()
    histogram.update(scores, mask)
    assert time.perf_counter() - started < 0.1  # about 0.004 s on an idle core; sorting takes 0.5 s


def test_pixel_mean(data: Images) -> None:
    mean = PixelMean()
    assert np.isnan(mean.auroc())
    mean.update(np.ones((4, 4), np.float32), np.ones((4, 4), bool))
    for scores, mask in data:
        mean.update(scores, mask)
    expected = [oracle.roc_auc_score(mask.ravel(), scores.ravel()) for scores, mask in data if mask.any()]
    assert mean.auroc() == pytest.approx(np.mean(expected), abs=1e-6)


def looped_aupro(data: Images, limit: float) -> float:
    """PRO and FPR at every distinct score, by definition."""
    scores, masks = np.stack([s for s, _ in data]), np.stack([m for _, m in data])
    flat = [
        s[labels == i]
        for s, m in data
        for labels, n in [ndimage.label(m, np.ones((3, 3)))]
        for i in range(1, n + 1)
    ]  # fmt: skip
    fpr, pro = [0.0], [0.0]
    for threshold in np.unique(scores)[::-1]:
        fpr.append(np.mean(scores[~masks] >= threshold))
        pro.append(np.mean([np.mean(region >= threshold) for region in flat]))
    grid = np.union1d(np.linspace(0, limit, 20001), [x for x in fpr if x <= limit])
    return float(np.trapezoid(np.interp(grid, fpr, pro), grid) / limit)


@pytest.mark.parametrize("limit", [0.05, 0.3, 1.0])
def test_aupro_against_a_loop_over_thresholds(limit: float) -> None:
    data = [(np.round(s, 2), m) for s, m in images(6, 48, seed=2)]
    streaming = Aupro(limit)
    for scores, mask in data:
        streaming.update(scores, mask)
    assert streaming.aupro() == pytest.approx(looped_aupro(data, limit), abs=2e-3)


def test_aupro_edge_cases() -> None:
    perfect = Aupro()
    assert np.isnan(perfect.aupro())
    mask = np.zeros((20, 20), bool)
    mask[2:5, 2:5] = mask[10:18, 10:18] = True
    perfect.update(mask.astype(np.float32), mask)
    assert perfect.aupro() == pytest.approx(1.0)
    # one of two regions found whatever its size: half the area
    half = Aupro()
    scores = np.zeros((20, 20), np.float32)
    scores[2:5, 2:5] = 2
    scores[~mask] = 1
    half.update(scores, mask)
    assert half.aupro() == pytest.approx(0.5)
    with pytest.raises(ValueError, match="limit"):
        Aupro(0)


def test_curves_are_thin_and_keep_the_area(histogram: PixelHistogram) -> None:
    ranking = histogram.ranking()
    roc, pr = ranking.roc_curve(), ranking.pr_curve()
    assert len(roc) <= 200
    assert len(pr) <= 200
    np.testing.assert_array_equal(roc[[0, -1]], [[0, 0], [1, 1]])
    assert np.trapezoid(roc[:, 1], roc[:, 0]) == pytest.approx(ranking.auroc(), abs=1e-4)
    assert np.trapezoid(pr[:, 1], pr[:, 0]) == pytest.approx(ranking.average_precision(), abs=5e-3)
    assert pr[-1, 0] == 1.0
    exact = rank([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    fpr, tpr, _ = oracle.roc_curve([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], drop_intermediate=False)
    np.testing.assert_allclose(exact.roc_curve(), np.stack([fpr, tpr], axis=1))


def test_delong_variance_by_its_double_sum() -> None:
    rng = np.random.default_rng(4)
    good, bad = np.round(rng.normal(0, 1, 40), 1), np.round(rng.normal(1, 1, 25), 1)
    wins = (bad[:, None] > good).astype(float) + 0.5 * (bad[:, None] == good)
    area = wins.mean()
    variance = wins.mean(1).var(ddof=1) / bad.size + wins.mean(0).var(ddof=1) / good.size
    centre, half = np.log(area / (1 - area)), 1.959964 * np.sqrt(variance) / (area * (1 - area))
    expected = 1 / (1 + np.exp(-(centre + np.array([-half, half]))))
    labels = np.arange(65) >= 40
    assert auroc_interval(np.concatenate([good, bad]), labels) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("shift", [0.5, 2.0, 3.5])
def test_auroc_interval_covers_the_truth(shift: float) -> None:
    rng = np.random.default_rng(6)
    truth, labels, covered = NormalDist().cdf(shift / 2**0.5), np.arange(90) >= 50, 0
    for _ in range(800):
        low, high = auroc_interval(rng.normal(size=90) + shift * labels, labels)
        covered += low <= truth <= high
    assert covered / 800 >= 0.93


def test_auroc_interval_edge_cases() -> None:
    low, high = auroc_interval([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [0] * 5 + [1] * 5)
    assert high == 1.0
    assert low == pytest.approx(0.025**0.2)
    assert auroc_interval([5, 6, 1, 2], [0, 0, 1, 1]) == pytest.approx((0.0, 1 - 0.025**0.5))
    assert auroc_interval([1, 3, 2], [0, 0, 1]) == (0.0, 1.0)
    assert np.isnan(auroc_interval([1, 2], [1, 1])[0])
