from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest

from fcdd.paper import tables
from fcdd.paper.published import Figure
from fcdd.paper.tables import Cell, Table

PAPER = Figure(0.95, "Table 9")
FOUR_DIGITS = Figure(0.8567, "Table 8")


def test_a_cell_gives_mean_deviation_and_difference() -> None:
    values = {0: 0.90, 1: 0.94, 4: 0.98}
    cell = Cell(values, PAPER)
    assert cell.mean == pytest.approx(np.mean(list(values.values())))
    assert cell.deviation == pytest.approx(np.std(list(values.values()), ddof=1))
    assert cell.difference == pytest.approx(-0.01)
    assert cell.text() == "0.940 ± 0.040 (0.95, -1.0)"


@pytest.mark.parametrize(("value", "flagged"), [(0.931, False), (0.929, True), (0.971, False), (1.0, False)])
def test_more_than_two_points_below_the_paper_are_flagged_and_better_is_not(value: float, flagged: bool) -> None:
    assert Cell({0: value}, PAPER).flagged == flagged
    assert ("⚠" in Cell({0: value}, PAPER).text()) == flagged


def test_what_was_not_run_keeps_the_published_figure() -> None:
    assert Cell({}, PAPER).text() == "0.95*"
    assert Cell({}, FOUR_DIGITS).text() == "0.8567*"
    assert Cell().text() == "–"
    assert Cell({0: 0.5}).text() == "0.500"


def test_the_mean_is_over_seeds_that_all_classes_have() -> None:
    cells = [Cell({0: 0.8, 1: 0.9}, PAPER), Cell({1: 0.7, 2: 0.1}, PAPER)]
    mean = tables.mean_cell(cells, Figure(0.82, ""))
    assert mean.measured == {1: pytest.approx(0.8)}
    assert mean.flagged  # two points are too much for a mean
    assert not tables.mean_cell(cells, Figure(0.809, "")).flagged


def test_a_mean_over_part_of_the_classes_is_compared_with_the_same_part() -> None:
    cells = [
        Cell({0: 0.8}, Figure(0.9, "")),
        Cell({0: 0.7}, Figure(0.8, "")),
        Cell({}, Figure(0.1, "")),
    ]
    mean = tables.mean_cell(cells, Figure(0.6, ""))
    assert mean.published is not None
    assert mean.published.value == pytest.approx(0.85)
    assert tables.mean_cell([Cell({0: 0.8}), Cell()], PAPER).published is None
    assert tables.mean_cell([Cell(), Cell()], PAPER).text() == "0.95*"


@pytest.fixture
def table() -> Table:
    rows = {"a_b": [Cell({0: 0.5, 1: 0.6}, PAPER), Cell({}, FOUR_DIGITS)], "c & <d>": [Cell({0: 0.9}), Cell()]}
    return Table("AUC & more", "class", ["FCDD", "AE"], rows, ["Data: 100 % of it."])


def test_csv_has_full_precision(table: Table) -> None:
    rows = list(csv.DictReader(io.StringIO(tables.as_csv([table]))))
    assert [(row["row"], row["column"]) for row in rows] == [
        ("a_b", "FCDD"), ("a_b", "AE"), ("c & <d>", "FCDD"), ("c & <d>", "AE"),
    ]  # fmt: skip
    assert float(rows[0]["mean"]) == pytest.approx(0.55)
    assert float(rows[0]["difference"]) == pytest.approx(-0.40)
    assert (rows[0]["seeds"], rows[0]["flagged"], rows[0]["source"]) == ("2", "True", "Table 9")
    assert (rows[1]["mean"], rows[1]["published"]) == ("", "0.8567")


def test_markdown_latex_and_html_say_the_same(table: Table, tmp_path: Path) -> None:
    paths = tables.write([table], tmp_path, "t", "Title", ["f.png"])
    assert [path.name for path in paths] == ["t.md", "t.csv", "t.tex", "t.html"]
    markdown, _, latex, html = (path.read_text() for path in paths)
    assert "| a_b | 0.550 ± 0.071 (0.95, -40.0) ⚠ | 0.8567* |" in markdown
    assert "- Data: 100 % of it." in markdown
    assert "![f.png](f.png)" in markdown
    assert r"a\_b & 0.550 $\pm$ 0.071 (0.95, -40.0) $^{!}$ & 0.8567$^*$ \\" in latex
    assert r"AUC \& more" in latex
    assert r"100 \% of it." in latex
    assert latex.count(r"\begin") == latex.count(r"\end") == 2
    assert "<td class=flag>0.550 ± 0.071" in html
    assert "c &amp; &lt;d&gt;" in html


def test_the_legend_explains_only_what_is_there() -> None:
    plain = Table("t", "c", ["x"], {"r": [Cell({0: 0.95}, PAPER)]})
    assert len(plain.legend()) == 1
    assert Table("t", "c", ["x"], {"r": [Cell()]}).legend() == []
