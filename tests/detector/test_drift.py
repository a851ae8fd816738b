"""Drift against scipy and by simulation: what is found, and what so many images could have shown."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from scipy import stats

from fcdd.detector.calibration import Calibration
from fcdd.detector.drift import compare, drift, noticeable
from fcdd.errors import CalibrationError


def scores(n: int, seed: int = 0) -> tuple[float, ...]:
    return tuple(np.random.default_rng(seed).exponential(size=n))


def known(scores: Iterable[float]) -> Calibration:
    values = tuple(scores)
    return Calibration(values, reject=max(0.01, 1 / (len(values) + 1)), review=0.6)


@pytest.mark.parametrize(("n", "m"), [(5, 7), (20, 20), (60, 45), (150, 31), (1, 4)])
@pytest.mark.parametrize("shift", [0.0, 0.4, 1.5])
def test_drift_against_scipy_exact(n: int, m: int, shift: float) -> None:
    rng = np.random.default_rng(n * m)
    old, new = rng.exponential(size=n), rng.exponential(size=m) + shift
    found, expected = drift(known(old), new.tolist()), stats.ks_2samp(old, new, method="exact")
    assert found.statistic == pytest.approx(expected.statistic)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-11)


def test_drift_size_and_power() -> None:
    rng, runs = np.random.default_rng(3), 1500

    def p_value(old: np.ndarray, new: np.ndarray) -> float:
        return compare(np.sort(old), np.sort(new))[1]

    null = [p_value(rng.exponential(size=80), rng.exponential(size=60)) for _ in range(runs)]
    assert 0.03 <= np.mean(np.array(null) <= 0.05) <= 0.06  # exact but discrete: never above its level
    moved = [compare(np.sort(rng.normal(size=80)), np.sort(rng.normal(size=60) + 0.8)) for _ in range(200)]
    assert np.mean([p <= 0.01 for _, p in moved]) > 0.9
    assert all(gap > 0 for gap, p in moved if p <= 0.01)
    wider = [p_value(rng.normal(size=150), 3 * rng.normal(size=150)) for _ in range(100)]
    assert np.mean(np.array(wider) <= 0.01) > 0.9  # a change of spread alone


def test_drift_sentence_and_refusals() -> None:
    still, lower = drift(known(scores(100)), scores(100, 1)), drift(known(scores(100)), [0.01] * 50)
    assert not still.drifted
    assert still.direction == "none"
    assert "No sign of drift" in still.sentence
    assert lower.drifted
    assert lower.direction == "lower"
    assert "lower than at calibration" in lower.sentence
    with pytest.raises(CalibrationError):
        drift(known(scores(100)), [])
    with pytest.raises(CalibrationError):
        drift(known(scores(100)), [float("nan")])
    assert drift(known([1.0] * 30), [1.0] * 30).p_value == 1.0


@pytest.mark.parametrize("images", [5, 20, 80])
def test_what_is_called_noticeable_is_noticed_in_four_of_five_cases(images: int) -> None:
    rng = np.random.default_rng(7)
    old = np.sort(10 + rng.normal(size=100))
    factor = noticeable(old, images, 0.01)
    assert factor is not None
    found = [compare(old, np.sort(factor * rng.choice(old, images)))[1] <= 0.01 for _ in range(400)]
    assert np.mean(found) == pytest.approx(0.8, abs=0.1)


def test_more_images_show_less_and_too_few_say_so() -> None:
    rng = np.random.default_rng(8)
    calibration = Calibration(tuple(10 + rng.normal(size=100)), reject=0.02)
    told = [drift(calibration, (10 + rng.normal(size=images)).tolist()) for images in (1, 5, 40, 160)]
    assert told[0].noticeable is None
    assert "No change at all could have shown" in told[0].sentence
    factors = [one.noticeable for one in told[1:]]
    assert factors == sorted(factors, reverse=True)
    assert not told[1].drifted
    assert not told[0].enough
    assert told[2].enough == told[3].enough is True
    assert f"{factors[2]:.3g} × as high" in told[3].sentence
    assert "No sign of drift" in told[3].sentence
    wide = Calibration(tuple(np.exp(rng.normal(size=100))), reject=0.2, review=0.3)
    few = drift(wide, wide.scores[10:95:20])
    assert few.noticeable is not None
    assert few.sentence.startswith("Too few images to say")
    assert "every second good part would be rejected" in few.sentence
