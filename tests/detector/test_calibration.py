"""Conformal guarantees by simulation, beta quantiles and drift against scipy, thresholds against plain loops."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from fcdd.detector.calibration import Calibration, CalibrationError, Limits, Verdict, beta_quantile, drift
from fcdd.errors import FcddError


def scores(n: int, seed: int = 0) -> tuple[float, ...]:
    return tuple(np.random.default_rng(seed).exponential(size=n))


def test_p_value_by_counting() -> None:
    calibration = Calibration((3.0, 1.0, 2.0, 2.0))
    assert calibration.scores == (1.0, 2.0, 2.0, 3.0)
    assert [calibration.p_value(s) for s in (0, 1, 1.5, 2, 2.5, 3, 9)] == [1, 1, 0.8, 0.8, 0.4, 0.4, 0.2]
    with pytest.raises(CalibrationError, match="NaN"):
        calibration.p_value(float("nan"))


@pytest.mark.parametrize("n", [19, 50, 99, 100, 137])
def test_threshold_is_the_order_statistic_and_agrees_with_p_values(n: int) -> None:
    calibration = Calibration(scores(n))
    for level in (0.05, 0.1, 0.29, 0.5, 0.9):
        threshold = calibration.threshold(level)
        k = int(np.ceil(round((1 - level) * (n + 1), 6)))
        assert threshold == sorted(calibration.scores)[k - 1]
        for score in np.random.default_rng(n).exponential(size=200).tolist() + list(calibration.scores):
            assert (score > threshold) == (calibration.p_value(score) <= level + 1e-12)


@pytest.mark.parametrize(("n", "level"), [(19, 0.05), (60, 0.05), (150, 0.01), (40, 0.2)])
def test_false_reject_rate_and_its_beta_interval_hold(n: int, level: float) -> None:
    rng = np.random.default_rng(n)
    realised, runs = [], 3000
    guarantee = Calibration(scores(n)).guarantee(level)
    for _ in range(runs):
        threshold = Calibration(tuple(rng.exponential(size=n))).threshold(level)
        realised.append(np.exp(-threshold))  # P(exponential > threshold)
    assert np.mean(realised) <= level * 1.03
    assert np.mean(realised) == pytest.approx(guarantee.expected, rel=0.06)
    inside = np.mean([guarantee.low <= rate <= guarantee.high for rate in realised])
    assert inside == pytest.approx(0.9, abs=0.02)
    assert guarantee.smallest_level == 1 / (n + 1)
    assert f"{n} good images" in str(guarantee)


def test_too_few_images_says_how_many_are_needed() -> None:
    calibration = Calibration(scores(50))
    with pytest.raises(FcddError, match="at least 99 good images, got 50: add 49 more"):
        calibration.threshold(0.01)
    assert Calibration(scores(99)).threshold(0.01) == max(scores(99))
    with pytest.raises(CalibrationError):
        Calibration(scores(98)).threshold(0.01)
    with pytest.raises(CalibrationError, match=r"\(0, 1\)"):
        calibration.threshold(0)


def test_verdicts() -> None:
    calibration = Calibration(tuple(range(1, 200)), review=0.05, reject=0.01)  # n + 1 = 200
    assert calibration.verdict(190) is Verdict.OK
    assert calibration.verdict(190.5) is Verdict.REVIEW
    assert calibration.verdict(198) is Verdict.REVIEW
    assert calibration.verdict(198.5) is Verdict.NG
    assert calibration.verdict(198.5) == "NG"
    few = Calibration(tuple(range(1, 51)))
    assert few.verdict(1e9) is Verdict.REVIEW  # 50 images cannot support 1 %
    assert Calibration(tuple(range(1, 51)), reject_above=60).verdict(61) is Verdict.NG
    assert Calibration(tuple(range(1, 51)), reject_above=60).verdict(60) is Verdict.REVIEW
    with pytest.raises(CalibrationError, match="at least 19"):
        Calibration((1.0, 2.0)).verdict(5)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 99), (2, 30), (5, 5), (40, 3), (100, 900), (1, 20000)])
@pytest.mark.parametrize("q", [0.001, 0.05, 0.5, 0.95, 0.999])
def test_beta_quantile_against_scipy(a: int, b: int, q: float) -> None:
    assert beta_quantile(q, a, b) == pytest.approx(stats.beta.ppf(q, a, b), rel=1e-7)


def test_miss_rate_threshold_keeps_its_promise() -> None:
    rng, calibration = np.random.default_rng(1), Calibration(scores(20))
    missed = []
    for _ in range(2000):
        threshold = calibration.threshold_by_miss_rate((3 + rng.normal(size=39)).tolist(), 0.1)
        missed.append(stats.norm.cdf(threshold - 3))
    assert 0.09 < np.mean(missed) <= 0.103  # 4 of 40: exactly 0.1
    with pytest.raises(CalibrationError, match="at least 19 defects, got 5: add 14 more"):
        calibration.threshold_by_miss_rate([1, 2, 3, 4, 5], 0.05)
    assert calibration.threshold_by_miss_rate([5.0], 0.5) < 5.0


def test_f1_and_cost_thresholds_against_a_loop() -> None:
    calibration, rng = Calibration(scores(80)), np.random.default_rng(2)
    defects = (1.5 + rng.exponential(size=30)).tolist()
    good, bad = np.array(calibration.scores), np.array(defects)
    candidates = [-1.0, *good, *bad]

    def f1(t: float) -> float:
        true, false = (bad > t).sum(), (good > t).sum()
        return float(2 * true / (true + false + bad.size))

    assert f1(calibration.threshold_by_f1(defects)) == pytest.approx(max(map(f1, candidates)))
    for false_reject, escape, prior in [(1, 100, 0.01), (1, 1, 0.5), (50, 1, 0.01), (0, 1, 0.1), (1, 1000, 0.5)]:

        def cost(t: float, c: float = false_reject, e: float = escape, p: float = prior) -> float:
            return float((1 - p) * c * (good > t).mean() + p * e * (bad <= t).mean())

        threshold = calibration.threshold_by_cost(defects, false_reject=false_reject, escape=escape, prior=prior)
        assert cost(threshold) == pytest.approx(min(map(cost, candidates)))
    assert calibration.threshold_by_cost(defects, false_reject=1e9, escape=1, prior=0.01) >= good.max()
    with pytest.raises(CalibrationError, match="prior"):
        calibration.threshold_by_cost(defects, false_reject=1, escape=1, prior=0)


@pytest.mark.parametrize(("n", "m"), [(5, 7), (20, 20), (60, 45), (150, 31), (1, 4)])
@pytest.mark.parametrize("shift", [0.0, 0.4, 1.5])
def test_drift_against_scipy_exact(n: int, m: int, shift: float) -> None:
    rng = np.random.default_rng(n * m)
    old, new = rng.exponential(size=n), rng.exponential(size=m) + shift
    found, expected = drift(old.tolist(), new.tolist()), stats.ks_2samp(old, new, method="exact")
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-11)


def test_drift_size_and_power() -> None:
    rng, runs = np.random.default_rng(3), 1500
    null = [drift(rng.exponential(size=80).tolist(), rng.exponential(size=60).tolist()).p_value for _ in range(runs)]
    assert 0.03 <= np.mean(np.array(null) <= 0.05) <= 0.06  # exact but discrete: never above its level
    moved = [drift(rng.normal(size=80).tolist(), (rng.normal(size=60) + 0.8).tolist()) for _ in range(200)]
    assert np.mean([found.drifted for found in moved]) > 0.9
    assert all(found.direction == "higher" for found in moved if found.drifted)
    wider = [drift(rng.normal(size=150).tolist(), (3 * rng.normal(size=150)).tolist()).drifted for _ in range(100)]
    assert np.mean(wider) > 0.9  # a change of spread alone


def test_drift_sentence_and_refusals() -> None:
    still, lower = drift(scores(100), scores(100, 1)), drift(scores(100), [0.01] * 50)
    assert not still.drifted
    assert still.direction == "none"
    assert "No sign of drift" in still.sentence
    assert lower.drifted
    assert lower.direction == "lower"
    assert "lower than at calibration" in lower.sentence
    with pytest.raises(CalibrationError):
        drift([], [1.0])
    with pytest.raises(CalibrationError):
        drift([1.0], [float("nan")])
    assert drift([1.0] * 30, [1.0] * 30).p_value == 1.0


def test_json_round_trip_and_validation() -> None:
    calibration = Calibration(scores(30), 0.1, 0.05, 2.5)
    data = json.loads(json.dumps(calibration.to_dict()))
    assert Calibration.from_dict(data) == calibration
    broken = [
        {}, [], {**data, "extra": 1}, {**data, "scores": []}, {**data, "scores": ["a"]}, {**data, "scores": "12"},
        {**data, "scores": [1, -1]}, {**data, "scores": [float("nan")]}, {**data, "review": 0.01},
        {**data, "reject": 0}, {**data, "review": "0.1"}, {**data, "reject_above": "x"}, {**data, "scores": [True]},
    ]  # fmt: skip
    for case in broken:
        with pytest.raises(CalibrationError):
            Calibration.from_dict(case)  # type: ignore[arg-type]


def test_a_threshold_that_was_set_promises_nothing_and_review_stays_below_it() -> None:
    scores = tuple(0.01 * k for k in range(1, 101))
    by_level = Calibration(scores, review=0.05, reject=0.01)
    assert by_level.limits == Limits(by_level.threshold(0.05), by_level.threshold(0.01))
    assert by_level.promise == str(by_level.guarantee(0.01))
    set_low = Calibration(scores, review=0.05, reject=0.01, reject_above=0.8)
    assert set_low.limits == Limits(0.8, 0.8)
    assert "20 of the 100 good calibration images score above it" in set_low.promise
    assert "at most" not in set_low.promise
    assert Calibration(scores, reject_above=0.0).limits.reject == 0.0
