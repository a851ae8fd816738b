"""Charts as HTML: inline SVG for shapes, which stretches, and text beside it, which keeps its size on any screen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
BARS = 48


def histogram(groups: Mapping[str, Sequence[float]], thresholds: Mapping[str, float]) -> str:
    """One row of bars a group (at most three: nominal, anomalous, unlabelled) over a shared axis, with threshold lines.

    `groups`: CSS class, which is also the row's name in lower case, → scores ≥ 0. Rows are scaled to their own peak.
    """
    everything = np.concatenate([np.asarray(list(scores), np.float64) for scores in groups.values()])
    axis = _Axis(np.append(everything, list(thresholds.values())))
    lines = "".join(
        f'<div class="mark{" late" if axis.place(value) > 0.6 else ""}" '
        f'style="left:{100 * axis.place(value):.2f}%;--line:{line}"><span>{escape(name)} {value:.3g}</span></div>'
        for line, (name, value) in enumerate(sorted(thresholds.items(), key=lambda pair: pair[1]))
    )
    rows = "".join(_bars(name, np.asarray(list(scores), np.float64), axis) for name, scores in groups.items() if scores)
    ticks = "".join(f'<span style="left:{100 * axis.place(t):.2f}%">{t:.3g}</span>' for t in axis.ticks())
    scale = "score, log scale" if axis.log else "score"
    return (
        f'<div class="hist" style="--lines:{len(thresholds)}">{rows}{lines}</div>'
        f'<div class="ticks">{ticks}</div><p class="axis">{scale}</p>'
    )


def curves(lines: Mapping[str, Floats], x_name: str, y_name: str, *, diagonal: bool) -> str:
    """Curves through points (K, 2) in [0, 1]². The first is solid, the second dashed; names go to the legend."""
    paths = ['<path class="chance" d="M0 100L100 0"/>'] if diagonal else []
    for index, points in enumerate(lines.values()):
        steps = "L".join(f"{100 * x:.2f} {100 - 100 * y:.2f}" for x, y in points)
        paths.append(f'<path class="line line-{index}" d="M{steps}"/>')
    grid = "".join(f'<path class="grid" d="M{p} 0V100M0 {p}H100"/>' for p in (25, 50, 75))
    legend = "".join(f'<span><i class="line-{i}"></i>{escape(name)}</span>' for i, name in enumerate(lines))
    ticks = "".join(f'<span style="left:{100 * t:g}%">{t:g}</span>' for t in (0, 0.5, 1))
    side = "".join(f'<span style="bottom:{100 * t:g}%">{t:g}</span>' for t in (0, 0.5, 1))
    return (
        f'<div class="curve"><div class="side">{side}</div><svg viewBox="0 0 100 100" preserveAspectRatio="none" '
        f'role="img" aria-label="{escape(y_name)} over {escape(x_name)}">{grid}{"".join(paths)}</svg>'
        f'<div class="ticks">{ticks}</div></div>'
        f'<p class="axis">{escape(y_name)} over {escape(x_name)}</p><p class="legend">{legend}</p>'
    )


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
        raw = math.log10(max(value, 1e-300)) if self.log else value
        return min(max((raw - self.low) / (self.high - self.low), 0.0), 1.0)

    def ticks(self) -> list[float]:
        if self.log:
            decades = range(math.floor(self.low), math.floor(self.high) + 1)
            factors = (1, 2, 5) if self.high - self.low < 3 else (1,)
            every = [factor * 10.0**power for power in decades for factor in factors]
            return [tick for tick in every if self.low <= math.log10(tick) <= self.high]
        step = 10 ** math.floor(math.log10(self.high / 4))
        step *= next(factor for factor in (1, 2, 5, 10) if self.high / (step * factor) <= 6)
        return [step * i for i in range(int(self.high / step) + 1)]


def _bars(name: str, scores: Floats, axis: _Axis) -> str:
    places = np.array([axis.place(score) for score in scores])
    counts = np.bincount((places * BARS).astype(int).clip(0, BARS - 1), minlength=BARS)
    width, peak = 100 / BARS, max(int(counts.max()), 1)
    bars = "".join(
        # A lone image still shows: no bar is lower than 3 % of the row.
        f'<rect x="{i * width + 0.2:.2f}" width="{width - 0.4:.2f}" '
        f'y="{100 - (h := max(100 * count / peak, 3)):.1f}" height="{h:.1f}"/>'
        for i, count in enumerate(counts)
        if count
    )
    return (
        f'<div class="row {escape(name)}"><p><b>{escape(name.capitalize())}</b> {len(scores)}</p>'
        f'<svg viewBox="0 0 100 100" preserveAspectRatio="none" role="img" '
        f'aria-label="score histogram of {len(scores)} {escape(name)} images">{bars}</svg></div>'
    )
