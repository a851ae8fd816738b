from __future__ import annotations

import statistics

import pytest

from fcdd.paper import published
from fcdd.paper.published import MEAN, figure


@pytest.mark.parametrize(
    ("row", "value"), [("bottle", 0.97), ("carpet", 0.96), ("hazelnut", 0.95), ("pill", 0.81), ("screw", 0.86)]
)
def test_figures_known_from_elsewhere(row: str, value: float) -> None:
    found = figure("mvtec", "fcdd", row)
    assert found is not None
    assert (found.value, found.confirmed) == (value, True)


@pytest.mark.parametrize("table", ["fmnist", "cifar10", "mvtec"])
def test_means_agree_with_their_classes(table: str) -> None:
    """A mean of n figures rounded to a hundredth, itself rounded, is off by a hundredth at most."""
    assert len(published.rows(table)) in (10, 15)
    for column in published.columns(table):
        values = [figure(table, column, row) for row in published.rows(table)]
        mean = figure(table, column, MEAN)
        assert mean is not None
        assert statistics.fmean(value.value for value in values if value) == pytest.approx(mean.value, abs=0.01)
        assert all(value and 0 <= value.value <= 1 and value.source for value in values)


def test_the_unknown_is_none_and_memory_is_marked() -> None:
    assert figure("fmnist", "hsc", "trouser") is None
    assert figure("nothing", "fcdd", "trouser") is None
    remembered, quoted = figure("sigma", "fcdd", "8"), figure("sigma", "fcdd", "14")
    assert remembered is not None
    assert quoted is not None
    assert (remembered.confirmed, quoted.confirmed) == (False, True)
