from __future__ import annotations

import statistics

import pytest

from fcdd.data import DATASETS
from fcdd.paper import published
from fcdd.paper.published import DEVIATION, MEAN, Figure, figure


@pytest.mark.parametrize(
    ("row", "value"), [("bottle", 0.97), ("carpet", 0.96), ("hazelnut", 0.95), ("pill", 0.81), ("screw", 0.86)]
)
def test_figures_known_from_elsewhere(row: str, value: float) -> None:
    found = figure("mvtec", "fcdd", row)
    assert found is not None
    assert found.value == value


@pytest.mark.parametrize("table", ["fmnist", "cifar10", "imagenet", "mvtec"])
def test_means_agree_with_their_classes(table: str) -> None:
    """A mean of n figures rounded to a hundredth, itself rounded, is off by a hundredth at most."""
    assert len(published.rows(table)) in (10, 15, 30)
    for column in published.columns(table):
        values = [figure(table, column, row) for row in published.rows(table)]
        mean = figure(table, column, MEAN)
        assert mean is not None
        assert statistics.fmean(value.value for value in values if value) == pytest.approx(mean.value, abs=0.01)
        assert all(value and 0 <= value.value <= 1 and value.source for value in values)


def test_the_unknown_is_none() -> None:
    assert figure("fmnist", "hsc", "trouser") is None
    assert figure("nothing", "fcdd", "trouser") is None


def test_some_columns_have_a_mean_only() -> None:
    means = [figure("imagenet", column, MEAN) for column in ("focal", "geo+ with OE", "fcdd")]
    assert [mean.value for mean in means if mean] == [0.56, 0.86, 0.94]
    assert figure("imagenet", "focal", "acorn") is None
    telephone = figure("imagenet", "fcdd", "dial telephone")
    assert telephone is not None
    assert telephone.value == 0.91


def test_rows_are_the_classes_of_the_dataset() -> None:
    for name in ("fmnist", "cifar10", "imagenet", "mvtec"):
        assert published.rows(name) == list(DATASETS[name].classes)


def test_deviations_over_classes_agree_with_their_classes() -> None:
    """Figures rounded to a hundredth move the deviation by less than a hundredth, and it is rounded itself."""
    for column in published.columns("mvtec"):
        values = [figure("mvtec", column, row) for row in published.rows("mvtec")]
        deviation = figure("mvtec", column, DEVIATION)
        assert deviation is not None
        assert statistics.pstdev(value.value for value in values if value) == pytest.approx(deviation.value, abs=0.01)


def test_the_studies_of_a_parameter_are_complete() -> None:
    ends = {"sigma": (0.8567, 0.9208), "cifar10-field": (0.9328, 0.9235), "mvtec-field": (0.88, 0.75)}
    for table, (first, last) in ends.items():
        values = [figure(table, "fcdd", row) for row in published.rows(table)]
        assert (values[0], values[-1]) == (Figure(first, values[0].source), Figure(last, values[0].source))  # type: ignore[union-attr]
    assert [len(published.rows(table)) for table in ends] == [7, 8, 6]
