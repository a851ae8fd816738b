"""Charts as HTML: inline SVG for shapes, which stretches, and text beside it, which keeps its size on any screen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from fcdd.report.html import environment

Floats = npt.NDArray[np.float64]
BARS = 48


def histogram(groups: Mapping[str, Sequence[float]], thresholds: Mapping[str, float], axis: str = "score") -> Markup:
    """One row of bars a group (at most three: good, defective, unlabelled) over a shared axis, with threshold lines.

    `groups`: CSS class, which is also the row's name in lower case, → scores ≥ 0. Rows are scaled to their own peak.
    `axis` says what is counted along the axis.
    """
    known = {name: np.asarray(list(scores), np.float64) for name, scores in groups.items()}
    scale = _Axis(np.concatenate([*known.values(), np.array(list(thresholds.values()), np.float64)]))
    rows = [
        {"name": name, "count": scores.size, "bars": _bars(scores, scale)}
        for name, scores in known.items()
        if scores.size
    ]
    marks = [
        {"name": f"{name} {value:.3g}", "place": 100 * scale.place(value)}
        for name, value in sorted(thresholds.items(), key=lambda pair: pair[1])
    ]
    ticks = [{"name": f"{tick:.3g}", "place": 100 * scale.place(tick)} for tick in scale.ticks()]
    return _drawn("histogram", rows, marks, ticks, f"{axis}, log scale" if scale.log else axis)


def curves(lines: Mapping[str, Floats], x_name: str, y_name: str, *, diagonal: bool) -> Markup:
    """Curves through points (K, 2) in [0, 1]². The first is solid, the others dashed; names go to the legend."""
    paths = {name: "L".join(f"{100 * x:.2f} {100 - 100 * y:.2f}" for x, y in points) for name, points in lines.items()}
    return _drawn("curves", paths, x_name, y_name, diagonal)


def figure(title: str, chart: Markup) -> Markup:
    """A chart under its title, both in a frame."""
    return Markup("<figure><h3>{}</h3>{}</figure>").format(title, chart)


def _drawn(macro: str, *values: Any) -> Markup:
    return Markup(getattr(environment().get_template("report/charts.html").module, macro)(*values))


class _Axis:
    """Scores → [0, 1], logarithmic where the highest is more than 20 times a low one (the 5th percentile)."""

    def __init__(self, values: Floats) -> None:
        positive = values[values > 0]
        bottom = float(np.quantile(positive, 0.05)) if positive.size else 1.0
        top = float(values.max(initial=0.0)) or 1.0
        self.log = top / bottom > 20
        self.low = math.log10(max(float(positive.min()), bottom / 10)) if self.log else 0.0
        self.high = math.log10(top * 1.1) if self.log else top * 1.02

    def place(self, value: float) -> float:
        """Where a score stands on the axis, in [0, 1]."""
        raw = math.log10(max(value, 1e-300)) if self.log else value
        return min(max((raw - self.low) / (self.high - self.low), 0.0), 1.0)

    def ticks(self) -> list[float]:
        """Round scores to write along the axis."""
        if self.log:
            decades = range(math.floor(self.low), math.floor(self.high) + 1)
            factors = (1, 2, 5) if self.high - self.low < 3 else (1,)
            every = [factor * 10.0**power for power in decades for factor in factors]
            return [tick for tick in every if self.low <= math.log10(tick) <= self.high]
        step = 10 ** math.floor(math.log10(self.high / 4))
        step *= next(factor for factor in (1, 2, 5, 10) if self.high / (step * factor) <= 6)
        return [step * i for i in range(int(self.high / step) + 1)]


def _bars(scores: Floats, axis: _Axis) -> list[dict[str, float]]:
    places = np.array([axis.place(score) for score in scores])
    counts = np.bincount((places * BARS).astype(int).clip(0, BARS - 1), minlength=BARS)
    width, peak = 100 / BARS, max(int(counts.max()), 1)
    # A lone image still shows: no bar is lower than 3 % of the row.
    return [
        {"x": i * width + 0.2, "width": width - 0.4, "height": max(100 * count / peak, 3)}
        for i, count in enumerate(counts)
        if count
    ]
