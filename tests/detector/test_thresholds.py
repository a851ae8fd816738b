"""Thresholds against plain loops and by simulation; none of them stands on a score."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fcdd.detector.thresholds import TIE, by_cost, by_f1, by_miss_rate, clear, edges
from fcdd.errors import CalibrationError


def scores(n: int, seed: int = 0) -> tuple[float, ...]:
    return tuple(np.random.default_rng(seed).exponential(size=n))


def test_miss_rate_threshold_keeps_its_promise() -> None:
    rng, known = np.random.default_rng(1), scores(20)
    missed = []
    for _ in range(2000):
        threshold = by_miss_rate(known, (3 + rng.normal(size=39)).tolist(), 0.1)
        missed.append(stats.norm.cdf(threshold - 3))
    assert 0.09 < np.mean(missed) <= 0.103  # 4 of 40: exactly 0.1
    with pytest.raises(CalibrationError, match="at least 19 defects, got 5: add 14 more"):
        by_miss_rate(known, [1, 2, 3, 4, 5], 0.05)
    assert by_miss_rate(known, [5.0], 0.5) < 5.0


def test_f1_and_cost_thresholds_against_a_loop() -> None:
    known, rng = scores(80), np.random.default_rng(2)
    defects = (1.5 + rng.exponential(size=30)).tolist()
    good, bad = np.array(known), np.array(defects)
    candidates = [-1.0, *good, *bad]

    def f1(t: float) -> float:
        true, false = (bad > t).sum(), (good > t).sum()
        return float(2 * true / (true + false + bad.size))

    assert f1(by_f1(known, defects)) == pytest.approx(max(map(f1, candidates)))
    for false_reject, escape, prior in [(1, 100, 0.01), (1, 1, 0.5), (50, 1, 0.01), (0, 1, 0.1), (1, 1000, 0.5)]:

        def cost(t: float, c: float = false_reject, e: float = escape, p: float = prior) -> float:
            return float((1 - p) * c * (good > t).mean() + p * e * (bad <= t).mean())

        threshold = by_cost(known, defects, false_reject=false_reject, escape=escape, prior=prior)
        assert cost(threshold) == pytest.approx(min(map(cost, candidates)))
    assert by_cost(known, defects, false_reject=1e9, escape=1, prior=0.01) >= good.max()
    with pytest.raises(CalibrationError, match="prior"):
        by_cost(known, defects, false_reject=1, escape=1, prior=0)


def test_scores_that_are_almost_equal_share_one_edge() -> None:
    assert edges([1.0, 1.0 + TIE, 1.0 + 2 * TIE, 2.0]) == pytest.approx([(1 + 2 * TIE) * (1 + TIE)] * 3 + [2 + 2 * TIE])
    assert edges([0.0, 0.0, 5.0]).tolist() == [0.0, 0.0, 5.0 * (1 + TIE)]


def test_thresholds_keep_away_from_every_score() -> None:
    random = np.random.default_rng(6)
    for _ in range(50):
        good, defects = random.exponential(size=30), (1 + random.exponential(size=20))
        good[:5] = defects[:5] * (1 + 1e-5 * random.standard_normal(5))  # some of them almost equal
        known = np.concatenate([good, defects])
        for found in (
            by_miss_rate(good.tolist(), defects.tolist(), 0.2),
            by_f1(good.tolist(), defects.tolist()),
            by_cost(good.tolist(), defects.tolist(), false_reject=1, escape=20, prior=0.05),
            clear(float(defects[3]), known.tolist()),
        ):
            assert np.abs(known / found - 1).min() > 0.9 * TIE
            assert clear(found, known.tolist()) == found


def test_a_threshold_by_hand_moves_only_off_a_score() -> None:
    assert clear(1.5, [1.0, 2.0]) == 1.5
    assert clear(2.0, [1.0, 2.0]) == clear(2.0 * (1 - TIE / 2), [1.0, 2.0]) == 2.0 * (1 + TIE)
    assert clear(0.0, [1.0, 2.0]) == 0.0
