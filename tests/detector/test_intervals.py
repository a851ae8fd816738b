"""Intervals against scipy."""

from __future__ import annotations

import pytest
from scipy import stats

from fcdd.detector.intervals import beta_quantile, clopper_pearson


@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 99), (2, 30), (5, 5), (40, 3), (100, 900), (1, 20000)])
@pytest.mark.parametrize("q", [0.001, 0.05, 0.5, 0.95, 0.999])
def test_beta_quantile_against_scipy(a: int, b: int, q: float) -> None:
    assert beta_quantile(q, a, b) == pytest.approx(stats.beta.ppf(q, a, b), rel=1e-7)


@pytest.mark.parametrize(("count", "trials"), [(0, 5), (5, 5), (1, 40), (13, 63), (399, 400)])
def test_clopper_pearson_against_scipy(count: int, trials: int) -> None:
    expected = stats.binomtest(count, trials).proportion_ci(0.95, "exact")
    assert clopper_pearson(count, trials) == pytest.approx((expected.low, expected.high), abs=1e-9)
