"""Conformal guarantees by simulation; limits, verdicts, p-values and sentences that agree with each other."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fcdd.detector.calibration import Calibration, Limits, Verdict
from fcdd.detector.intervals import clopper_pearson
from fcdd.detector.thresholds import TIE
from fcdd.errors import CalibrationError, FcddError


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
        assert threshold == pytest.approx(sorted(calibration.scores)[k - 1], rel=2 * TIE)
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
    assert Calibration(scores(99)).threshold(0.01) == max(scores(99)) * (1 + TIE)
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
    with pytest.raises(CalibrationError, match="at least 99"):  # 50 images cannot support 1 %
        Calibration(tuple(range(1, 51))).verdict(1e9)
    with pytest.raises(CalibrationError, match="NaN"):
        calibration.verdict(float("nan"))
    assert Calibration(tuple(range(1, 51)), reject_above=60).verdict(61) is Verdict.NG
    assert Calibration(tuple(range(1, 51)), reject_above=60).verdict(60) is Verdict.REVIEW
    with pytest.raises(CalibrationError, match="at least 19"):
        Calibration((1.0, 2.0), reject_above=1.5).verdict(5)


@pytest.mark.parametrize("given", [None, 0.0, 0.3, 2.5, 99.0])
def test_verdict_limits_and_p_value_agree(given: float | None) -> None:
    calibration = Calibration(scores(150), review=0.1, reject=0.02, reject_above=given)
    limits = calibration.limits
    assert limits.review <= limits.reject
    for score in [*np.random.default_rng(4).exponential(size=300), *calibration.scores, limits.review, limits.reject]:
        verdict = calibration.verdict(score)
        assert (verdict is Verdict.NG) == (score > limits.reject)
        assert (verdict is not Verdict.OK) == (score > limits.review)
        if given is None:
            assert (verdict is Verdict.NG) == (calibration.p_value(score) <= 0.02 + 1e-12)
            assert (verdict is not Verdict.OK) == (calibration.p_value(score) <= 0.1 + 1e-12)


def test_no_limit_stands_on_a_score_even_where_scores_are_almost_equal() -> None:
    random = np.random.default_rng(5)
    base = random.exponential(size=60)
    crowd = np.concatenate([base, base * (1 + 1e-5), base * (1 + 1.9e-4), np.full(20, float(np.median(base)))])
    calibration = Calibration(tuple(crowd))
    for level in np.arange(0.01, 0.99, 0.01):
        threshold = calibration.threshold(float(level))
        assert np.abs(crowd / threshold - 1).min() > 0.9 * TIE
        assert np.mean(crowd > threshold) <= level
    for score in crowd:  # the same image, elsewhere
        for other in (score * (1 - 5e-5), score * (1 + 5e-5)):
            assert calibration.verdict(other) is calibration.verdict(score)
            assert calibration.p_value(other) == calibration.p_value(score)


def test_json_round_trip_and_validation() -> None:
    calibration = Calibration(scores(30), 0.1, 0.05, 2.5, "by hand", (3.0, 2.0), 0.25)
    data = json.loads(json.dumps(calibration.to_dict()))
    assert Calibration.from_dict(data) == calibration
    before = {key: data[key] for key in ("scores", "review", "reject", "reject_above")}  # as schema 2 has it
    assert Calibration.from_dict(before) == Calibration(scores(30), 0.1, 0.05, 2.5)
    broken = [
        {}, [], {**data, "extra": 1}, {**data, "scores": []}, {**data, "scores": ["a"]}, {**data, "scores": "12"},
        {**data, "scores": [1, -1]}, {**data, "scores": [float("nan")]}, {**data, "review": 0.01},
        {**data, "reject": 0}, {**data, "review": "0.1"}, {**data, "reject_above": "x"}, {**data, "scores": [True]},
        {**data, "defects": None}, {**data, "defects": [-1]}, {**data, "way": 3}, {**data, "usual": None},
        {**data, "usual": -1}, {**data, "reject_above": float("inf")},
    ]  # fmt: skip
    for case in broken:
        with pytest.raises(CalibrationError):
            Calibration.from_dict(case)  # type: ignore[arg-type]


def test_a_threshold_that_was_set_promises_nothing_and_review_stays_below_it() -> None:
    scores = tuple(0.01 * k for k in range(1, 101))
    by_level = Calibration(scores, review=0.05, reject=0.01)
    assert by_level.limits == Limits(by_level.threshold(0.05), by_level.threshold(0.01))
    assert by_level.promise == str(by_level.guarantee(0.01))
    set_low = Calibration(scores, review=0.05, reject=0.01, reject_above=0.805, way="by hand")
    assert set_low.limits == Limits(0.805, 0.805)
    low, high = (f"{100 * end:.2g} %" for end in clopper_pearson(20, 100))
    assert set_low.promise == (
        "Rejects above 0.805, a threshold that was set by hand. Good calibration images rejected: 20 of 100 (20 %); of "
        f"all such parts between {low} and {high}, with 95 % confidence. Nothing more is promised."
    )
    assert Calibration(scores, reject_above=0.0).limits.reject == 0.0


def test_a_threshold_from_defects_says_what_it_does_to_them() -> None:
    scores = tuple(0.01 * k for k in range(1, 101))
    chosen = Calibration(scores, reject_above=2.0, way="from 4 labelled defects", defects=(1.5, 3.0, 3.5, 4.0))
    assert "Defects not rejected: 1 of 4 (25 %); of all such parts between 0.63 % and 81 %" in chosen.promise
    assert "others may fare worse" in chosen.promise
    assert "at most" not in chosen.promise
    assert chosen.rejected.count == 0
    tried = Calibration(scores, reject_above=5.0, way="by hand", defects=(1.5, 3.0))
    assert "Defects not rejected: 2 of 2 (100 %); of all such parts between 16 % and 100 %" in tried.promise
    assert "fare worse" not in tried.promise
