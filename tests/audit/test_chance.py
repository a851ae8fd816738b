"""Tails, intervals and what is detectable, against simulation and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fcdd import metrics
from fcdd.audit import chance


def test_binomial_tail_against_enumeration() -> None:
    assert chance.binomial_tail(9, 10) == pytest.approx(11 / 1024)
    assert chance.binomial_tail(0, 10) == 1.0
    assert chance.binomial_tail(3, 3, 0.2) == pytest.approx(0.008)


def test_hypergeometric_tail_against_enumeration() -> None:
    assert chance.hypergeometric_tail(3, 3, 5, 12) == pytest.approx(math.comb(5, 3) / math.comb(12, 3))
    assert chance.hypergeometric_tail(6, 6, 5, 12) == 0.0
    exact = sum(math.comb(5, i) * math.comb(7, 4 - i) for i in (2, 3, 4)) / math.comb(12, 4)
    assert chance.hypergeometric_tail(2, 4, 5, 12) == pytest.approx(exact)
    assert chance.hypergeometric_tail(0, 4, 5, 12) == pytest.approx(1.0)


@pytest.mark.parametrize("count", [2, 3, 5, 10])
@pytest.mark.parametrize("error", [0.05, 0.01])
def test_the_interval_of_the_mean_misses_as_often_as_it_says(count: int, error: float) -> None:
    random, trials = np.random.default_rng(0), 10_000
    intervals = [chance.mean_interval(random.normal(1.0, 2.0, count), error) for _ in range(trials)]
    missed = sum(not low <= 1.0 <= high for low, high in intervals) / trials
    assert missed == pytest.approx(error, abs=4 * math.sqrt(error / trials))


def test_one_value_says_nothing_and_equal_values_leave_no_doubt() -> None:
    assert chance.mean_interval(np.array([1.0]), 0.05) == (-math.inf, math.inf)
    assert chance.mean_interval(np.full(4, 2.0), 0.05) == (2.0, 2.0)
    assert chance.detectable(np.array([1.0]), 0.05) == math.inf
    assert chance.detectable(np.full(4, 2.0), 0.05) == 0.0


@pytest.mark.parametrize("count", [5, 8, 24])
def test_what_is_called_detectable_is_detected_so_often(count: int) -> None:
    random, error, trials = np.random.default_rng(1), 0.01, 3000
    known = random.normal(size=count)
    shift = chance.detectable(known / known.std(ddof=1), error)  # values whose spread is 1, as below
    found = sum(chance.mean_interval(random.normal(shift, 1.0, count), error)[0] > 0 for _ in range(trials))
    assert found / trials == pytest.approx(chance.POWER, abs=0.035)


@pytest.mark.parametrize(("good", "anomalous"), [(40, 20), (100, 50)])
def test_a_detectable_auroc_is_detected_about_so_often(good: int, anomalous: int) -> None:
    random, error, trials = np.random.default_rng(2), 0.01, 600
    area = chance.detectable_auroc(good, anomalous, error)
    assert 0.5 < area < 0.9
    shift = math.sqrt(2) * float(chance.stats.norm.ppf(area))  # of normal scores with that AUROC
    labels = np.repeat([0, 1], [good, anomalous])
    found = 0
    for _ in range(trials):
        scores = random.normal(size=good + anomalous) + shift * labels
        found += metrics.auroc_interval(scores, labels, 1 - error)[0] > 0.5
    assert found / trials == pytest.approx(chance.POWER, abs=0.1)
