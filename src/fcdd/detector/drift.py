"""Whether new scores of presumably good parts still look like the calibration scores, and what would have shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fcdd.detector.calibration import Calibration
from fcdd.errors import CalibrationError

Floats = npt.NDArray[np.float64]
POWER = 0.8  # chance of noticing what is called noticeable
TRIALS = 400  # samples drawn to find it
FURTHEST = 1e3  # times as high: what would not show even then is called nothing
ADVICE = "Check lighting, camera and parts, then calibrate again; until then the false-reject guarantee does not hold."


@dataclass(frozen=True)
class Drift:
    """What a test for drift found, and what it could have found."""

    statistic: float  # Kolmogorov–Smirnov: the largest gap between the two empirical distributions, in [0, 1]
    p_value: float
    drifted: bool
    direction: str  # "higher", "lower" or "none"
    noticeable: float | None  # scores so many times as high would show with probability 0.8; None: no change would
    enough: bool  # whether that shows before every second good part is rejected
    sentence: str


def drift(calibration: Calibration, new: Sequence[float], level: float = 0.01) -> Drift:
    """Two-sample Kolmogorov–Smirnov test with its exact p-value (conservative where scores tie)."""
    if not 0 < level < 1:
        raise CalibrationError(f"a level lies in (0, 1), got {level}")
    old, fresh = np.asarray(calibration.scores), np.sort(np.asarray(new, np.float64))
    if not (fresh.size and np.isfinite(fresh).all()):
        raise CalibrationError("drift needs at least one new score, all finite")
    widest, p = compare(old, fresh)
    drifted = p <= level
    direction = ("higher" if widest > 0 else "lower") if drifted else "none"
    factor = noticeable(old, fresh.size, level)
    enough = factor is not None and factor * float(np.median(old)) <= calibration.limits.reject
    change = (
        f"{fresh.size} new image{'s' * (fresh.size > 1)} (median score {np.median(fresh):.3g}) against {old.size} of "
        f"the calibration (median {np.median(old):.3g}), p = {p:.2g}"
    )
    if drifted:
        sentence = f"Scores are {direction} than at calibration: {change}. {ADVICE}"
    else:
        sentence = _unshown(change, factor, enough)
    return Drift(abs(widest) / (old.size * fresh.size), p, drifted, direction, factor, enough, sentence)


def compare(old: Floats, fresh: Floats) -> tuple[int, float]:
    """The widest gap between two ascending samples (n,) and (m,), see `_gaps`, and its p-value."""
    widest = int(_gaps(old, fresh[None])[0])
    return widest, kolmogorov_smirnov(old.size, fresh.size, abs(widest))


def noticeable(old: Floats, images: int, level: float) -> float | None:
    """The smallest factor on all scores that so many new images would show with probability `POWER`.

    New scores are drawn from the calibration scores (n,), times the factor, which is found to 1 %; None where the test
    would not call even the widest gap drift, or where `FURTHEST` is not enough.
    """
    if kolmogorov_smirnov(old.size, images, old.size * images) > level:
        return None
    few, many = 0, old.size * images  # the smallest gap that counts as drift lies above `few`, up to `many`
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if kolmogorov_smirnov(old.size, images, middle) <= level else (middle, many)
    drawn = np.random.default_rng(0).choice(old, (TRIALS, images))

    def shows(factor: float) -> bool:
        return float(np.mean(np.abs(_gaps(old, np.sort(factor * drawn, 1))) >= many)) >= POWER

    if not shows(FURTHEST):
        return None
    low, high = 1.0, FURTHEST
    while high / low > 1.01:
        middle_factor = math.sqrt(low * high)
        low, high = (low, middle_factor) if shows(middle_factor) else (middle_factor, high)
    return high


def _unshown(change: str, factor: float | None, enough: bool) -> str:
    """What it means that no drift was found."""
    if factor is None:
        return f"Too few images to say: {change}. No change at all could have shown in so few; give more."
    shown = f"scores {factor:.3g} × as high as at calibration, or more"
    if not enough:
        return (
            f"Too few images to say: {change}. So few show only {shown} (with 80 % probability), and every second good "
            "part would be rejected before that; give more."
        )
    return f"No sign of drift: {change}. So many would have shown {shown} (with 80 % probability); less may go unseen."


def _gaps(old: Floats, fresh: Floats) -> npt.NDArray[np.int64]:
    """For each ascending sample of `fresh` (T, m) the widest gap to `old` (n,), n·m times as large and with its sign,
    positive where the sample is higher; whole numbers keep equal gaps equal."""
    trials, m = fresh.shape
    n = old.size
    at_fresh = np.searchsorted(old, fresh.ravel(), "right").reshape(trials, m)
    below_fresh = np.searchsorted(old, fresh.ravel(), "left").reshape(trials, m)
    # The distributions are furthest apart just before or at one of the new scores, equal ones taken together.
    place, step = np.arange(m), fresh[:, 1:] > fresh[:, :-1]
    edge = np.ones((trials, 1), np.bool_)
    rank_before = np.maximum.accumulate(np.where(np.concatenate([edge, step], 1), place, 0), 1)
    ends = np.where(np.concatenate([step, edge], 1), place + 1, m)
    rank_after = np.minimum.accumulate(ends[:, ::-1], 1)[:, ::-1]
    both = np.concatenate([at_fresh * m - rank_after * n, below_fresh * m - rank_before * n], 1)
    widest = np.take_along_axis(both, np.abs(both).argmax(1)[:, None], 1)[:, 0]
    return np.asarray(widest, np.int64)


def kolmogorov_smirnov(n: int, m: int, gap: int) -> float:
    """P(max |i·m − j·n| ≥ gap) over the equally likely lattice paths (0, 0) → (n, m), i and j counting each sample.

    Row i holds the number of paths that stayed inside the band, scaled to a maximum of 1; the next row is its running
    sum over the band. O(n·m) additions.
    """
    n, m = min(n, m), max(n, m)
    j = np.arange(m + 1)
    row, log_scale = (j * n < gap).astype(np.float64), 0.0
    for i in range(1, n + 1):
        inside = np.abs(i * m - j * n) < gap
        row = np.cumsum(row * inside) * inside
        peak = float(row.max())
        if peak == 0:
            return 1.0
        row /= peak
        log_scale += math.log(peak)
    if row[-1] == 0:
        return 1.0
    total = math.lgamma(n + m + 1) - math.lgamma(n + 1) - math.lgamma(m + 1)
    stayed = math.exp(math.log(row[-1]) + log_scale - total)
    return min(1.0, max(1 - stayed, 1e-12))  # rounding hides anything smaller
