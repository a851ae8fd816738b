"""Tails and intervals against simulation and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fcdd.audit import chance


def test_binomial_tail_against_enumeration() -> None:
    assert chance.binomial_tail(9, 10) == pytest.approx(11 / 1024)
    assert chance.binomial_tail(0, 10) == 1.0
    assert chance.binomial_tail(3, 3, 0.2) == pytest.approx(0.008)


def test_hypergeometric_tails_against_enumeration() -> None:
    assert chance.all_of_one_class(3, 5, 12) == pytest.approx(math.comb(5, 3) / math.comb(12, 3))
    assert chance.all_of_one_class(6, 5, 12) == 0.0
    exact = sum(math.comb(5, i) * math.comb(7, 4 - i) for i in (2, 3, 4)) / math.comb(12, 4)
    assert chance.hypergeometric_tail(2, 4, 5, 12) == pytest.approx(exact)
    assert chance.hypergeometric_tail(0, 4, 5, 12) == pytest.approx(1.0)


def test_the_interval_of_the_mean_misses_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    missed = 0
    for _ in range(4000):
        low, high = chance.mean_interval(random.normal(1.0, 2.0, 10), 0.05)
        missed += not low <= 1.0 <= high
    assert missed / 4000 == pytest.approx(0.05, abs=0.012)
    assert chance.mean_interval(np.array([1.0, 2.0]), 0.05) == (-math.inf, math.inf)
