"""Bars, ticks and curves stand where the numbers say."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fcdd.metrics import rank
from fcdd.report.charts import BARS, curves, histogram


def heights(html: str, row: str) -> dict[int, float]:
    """Bar number → height in % of one row of a histogram."""
    section = html.split(f'class="row {row}"')[1].split("</svg>")[0]
    found = re.findall(r'<rect x="([\d.]+)" width="[\d.]+" y="([\d.]+)" height="([\d.]+)"', section)
    assert all(float(y) + float(height) == pytest.approx(100, abs=0.11) for _, y, height in found)
    return {int(float(x) / (100 / BARS)): float(height) for x, _, height in found}


def test_linear_histogram_counts() -> None:
    scores = np.random.default_rng(0).uniform(1, 5, 500)
    html = histogram({"good": scores.tolist(), "defective": [4.0]}, {"reject": 2.55})
    expected, _ = np.histogram(scores, BARS, (0, max(scores.max(), 4.0) * 1.02))
    for bar, height in heights(html, "good").items():
        assert height == pytest.approx(max(100 * expected[bar] / expected.max(), 3), abs=0.06)
    assert list(heights(html, "defective").values()) == [100.0]
    mark = float(re.search(r'class="mark" style="left:([\d.]+)%', html).group(1))  # type: ignore[union-attr]
    assert mark == pytest.approx(100 * 2.55 / (scores.max() * 1.02), abs=0.01)
    assert "reject 2.55" in html
    assert "log" not in html


def test_wide_ranges_become_logarithmic() -> None:
    html = histogram({"good": [0.01 * 1.1**i for i in range(80)]}, {})
    assert "log scale" in html
    ticks = re.findall(r'left:([\d.]+)%">([\d.]+)</span>', html)
    places, values = np.array(ticks, float).T
    slope = np.diff(places) / np.diff(np.log10(values))
    np.testing.assert_allclose(slope, slope[0], rtol=1e-2)


@pytest.mark.parametrize("scores", [[0.0], [0.0, 0.0, 0.0], [1e-20], [0.0, 1e9], [3.0] * 50])
def test_degenerate_scores(scores: list[float]) -> None:
    html = histogram({"good": scores, "defective": []}, {"review": 0.0})
    assert heights(html, "good")
    assert "defective" not in html


def test_curve_points_and_escaped_names() -> None:
    ranking = rank([1, 2, 3, 4], [0, 1, 0, 1])
    html = curves({"<b>": ranking.roc_curve()}, "x", "y", diagonal=True)
    assert 'd="M0.00 100.00L0.00 50.00L50.00 50.00L50.00 0.00L100.00 0.00"' in html
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
