"""From scores to decisions: conformal p-values, thresholds with a guarantee, the OK / REVIEW / NG band, and drift.

Good images that took no part in training give calibration scores s₁ … sₙ. If the next good part comes from the same
process, its score is equally likely to take any rank among them, whatever the scores' distribution. That alone yields
every guarantee below; none of them needs a defect, and none holds once the process has drifted. An image is rejected
when its score is *above* a threshold.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fcdd.errors import FcddError
from fcdd.metrics import rank

Floats = npt.NDArray[np.float64]
# Scores closer than this share of themselves count as equal: an image scores a little differently in another batch or
# runtime, and a calibration image must not change its verdict for that. Ties only ever raise p-values.
TIE = 1e-4


class CalibrationError(FcddError):
    """Calibration scores that are damaged, or too few for what was asked."""


class Verdict(StrEnum):
    """What to do with a part."""

    OK = "OK"
    REVIEW = "REVIEW"
    NG = "NG"


@dataclass(frozen=True)
class Guarantee:
    """What a false-reject level α promises with n calibration images."""

    level: float
    images: int
    expected: float  # the false-reject rate on average over calibration sets, ≤ level
    low: float  # in 90 % of calibration sets the rate that is realised lies between low …
    high: float  # … and high
    smallest_level: float  # the smallest α this many images support

    def __str__(self) -> str:
        return (
            f"Calibrated on {self.images} good images. On average at most {_percent(self.level)} of good parts score "
            f"above this threshold, as long as they come from the same process; for one calibration set the rate lies "
            f"between {_percent(self.low)} and {_percent(self.high)} in 90 % of cases. The smallest level this many "
            f"images support is {_percent(self.smallest_level)}."
        )


@dataclass(frozen=True)
class Limits:
    """Scores above which a part goes to review and above which it is rejected; review ≤ reject."""

    review: float
    reject: float


@dataclass(frozen=True)
class Calibration:
    """Scores of held-out good images, ascending, and the levels at which to review and to reject.

    `reject_above`, a threshold found with labelled defects or by hand, replaces the reject level where given.
    """

    scores: tuple[float, ...]
    review: float = 0.05
    reject: float = 0.01
    reject_above: float | None = None

    def __post_init__(self) -> None:
        if not self.scores or not all(math.isfinite(score) and score >= 0 for score in self.scores):
            raise CalibrationError("calibration needs at least one score, all finite and not negative")
        if not 0 < self.reject <= self.review < 1:
            raise CalibrationError(f"levels need 0 < reject ≤ review < 1, got {self.reject} and {self.review}")
        if self.reject_above is not None and not math.isfinite(self.reject_above):
            raise CalibrationError(f"reject_above must be finite, got {self.reject_above}")
        object.__setattr__(self, "scores", tuple(sorted(float(score) for score in self.scores)))

    def p_value(self, score: float) -> float:
        """(1 + #{sᵢ ≥ score}) / (n + 1): how often a good part scores this high. P(p ≤ α) ≤ α for good parts."""
        return self._rank(score) / (len(self.scores) + 1)

    def threshold(self, level: float) -> float:
        """The lowest threshold that a good part exceeds with probability ≤ α: the ⌈(1 − α)(n + 1)⌉-th smallest sᵢ."""
        return self.scores[-self._allowed(level)]

    @property
    def limits(self) -> Limits:
        """The thresholds in force: by their levels, unless the reject threshold was set from defects or by hand."""
        reject = self.threshold(self.reject) if self.reject_above is None else self.reject_above
        return Limits(min(self.threshold(self.review), reject), reject)

    @property
    def promise(self) -> str:
        """What the reject threshold in force promises, in a sentence; one that was set promises nothing of its own."""
        if self.reject_above is None:
            return str(self.guarantee(self.reject))
        above = sum(score > self.reject_above for score in self.scores)
        return (
            f"Rejects above {self.reject_above:.4g}, a threshold that was set from labelled defects or by hand. "
            f"{above} of the {len(self.scores)} good calibration images score above it; no rate is promised."
        )

    def guarantee(self, level: float) -> Guarantee:
        """What `threshold(level)` promises. With k = ⌊α(n + 1)⌋ the realised rate follows Beta(k, n + 1 − k)."""
        n, k = len(self.scores), self._allowed(level)
        low, high = beta_quantile(0.05, k, n + 1 - k), beta_quantile(0.95, k, n + 1 - k)
        return Guarantee(level, n, k / (n + 1), low, high, 1 / (n + 1))

    def verdict(self, score: float) -> Verdict:
        """NG where p ≤ reject, REVIEW where p ≤ review, else OK.

        With too few images for the reject level no p-value is that small and the worst verdict is REVIEW; with too few
        for the review level everything would pass as OK, which raises instead.
        """
        place = self._rank(score)
        for_review = self._allowed(self.review)
        if self.reject_above is None:
            rejected = place <= _budget(self.reject, len(self.scores))
        else:
            rejected = score > self.reject_above
        if rejected:
            return Verdict.NG
        return Verdict.REVIEW if place <= for_review else Verdict.OK

    def threshold_by_miss_rate(self, defects: Sequence[float], rate: float) -> float:
        """The highest threshold that a defect stays below with probability ≤ rate; conformal on labelled defects."""
        allowed = _budget(rate, len(defects))
        if allowed < 1:
            raise _too_few(rate, len(defects), "defects", "miss rate")
        return float(np.nextafter(np.sort(np.asarray(defects, np.float64))[allowed - 1], -np.inf))

    def threshold_by_f1(self, defects: Sequence[float]) -> float:
        """The threshold with the best F1 on the calibration scores and these defects."""
        return rank([*self.scores, *defects], [0] * len(self.scores) + [1] * len(defects)).best_f1()[1]

    def threshold_by_cost(self, defects: Sequence[float], *, false_reject: float, escape: float, prior: float) -> float:
        """The threshold with the least expected cost a part.

        (1 − prior) · false_reject · P(s > t | good) + prior · escape · P(s ≤ t | defect), with both probabilities as
        counted on the calibration scores and on `defects`; prior is the share of defects on the line.
        """
        if not (defects and 0 < prior < 1 and false_reject >= 0 and escape >= 0):
            raise CalibrationError("a cost threshold needs defects, a prior in (0, 1) and costs ≥ 0")
        ranking = rank([*self.scores, *defects], [0] * len(self.scores) + [1] * len(defects))
        rejected = np.cumsum(ranking.nominal[::-1])[::-1] / len(self.scores)
        missed = (np.cumsum(ranking.anomalous) - ranking.anomalous) / len(defects)
        # One threshold more: the highest score, above which nothing is rejected and everything missed.
        rejected, missed = np.append(rejected, 0), np.append(missed, 1)
        cost = (1 - prior) * false_reject * rejected + prior * escape * missed
        return float(np.append(ranking.cuts, ranking.ends[-1])[np.argmin(cost)])

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; `from_dict` gives back an equal object."""
        levels = {"review": self.review, "reject": self.reject, "reject_above": self.reject_above}
        return {"scores": list(self.scores), **levels}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Validated: CalibrationError where a key or a value is not what `to_dict` writes."""
        if not isinstance(data, Mapping) or set(data) != {"scores", "review", "reject", "reject_above"}:
            raise CalibrationError(f"calibration data needs scores, review, reject and reject_above, got {data!r:.200}")
        scores, limit = data["scores"], data["reject_above"]
        numbers = [*scores, data["review"], data["reject"]] if isinstance(scores, list) else [None]
        if not all(_is_number(number) for number in [*numbers, *([] if limit is None else [limit])]):
            raise CalibrationError("calibration data holds something that is not a number")
        return cls(tuple(scores), data["review"], data["reject"], limit)

    def _rank(self, score: float) -> int:
        """1 + #{sᵢ ≥ score}, in 1 … n + 1."""
        if math.isnan(score):
            raise CalibrationError("the score is NaN")
        return 1 + len(self.scores) - bisect_left(self.scores, score * (1 - TIE))

    def _allowed(self, level: float) -> int:
        """How many of n + 1 exchangeable good parts may be rejected at this level, at least 1."""
        allowed = _budget(level, len(self.scores))
        if allowed < 1:
            raise _too_few(level, len(self.scores), "good images", "false-reject level")
        return allowed


@dataclass(frozen=True)
class Drift:
    """Whether new scores of presumably good parts still look like the calibration scores."""

    statistic: float  # Kolmogorov–Smirnov: the largest gap between the two empirical distributions, in [0, 1]
    p_value: float
    drifted: bool
    direction: str  # "higher", "lower" or "none"
    sentence: str


def drift(calibration: Sequence[float], new: Sequence[float], level: float = 0.01) -> Drift:
    """Two-sample Kolmogorov–Smirnov test with its exact p-value (conservative where scores tie)."""
    if not 0 < level < 1:
        raise CalibrationError(f"a level lies in (0, 1), got {level}")
    old, fresh = np.sort(np.asarray(calibration, np.float64)), np.sort(np.asarray(new, np.float64))
    if not (old.size and fresh.size and np.isfinite(old).all() and np.isfinite(fresh).all()):
        raise CalibrationError("drift needs finite scores on both sides")
    values = np.union1d(old, fresh)
    # Integers, n·m times the gap, keep equal gaps equal.
    gaps = np.searchsorted(old, values, "right") * fresh.size - np.searchsorted(fresh, values, "right") * old.size
    widest = int(gaps[np.argmax(np.abs(gaps))])
    p = _kolmogorov_smirnov(old.size, fresh.size, abs(widest))
    drifted = p <= level
    direction = ("higher" if widest > 0 else "lower") if drifted else "none"
    change = f"{fresh.size} new scores (median {np.median(fresh):.3g}) against {old.size} (median {np.median(old):.3g})"
    sentence = (
        f"Scores are {direction} than at calibration: {change}, p = {p:.2g}. Check lighting, camera and parts, "
        "then calibrate again; until then the false-reject guarantee does not hold."
        if drifted
        else f"No sign of drift: {change}, p = {p:.2g}."
    )
    return Drift(abs(widest) / (old.size * fresh.size), p, drifted, direction, sentence)


def beta_quantile(probability: float, a: int, b: int) -> float:
    """x with I_x(a, b) = probability, for whole a, b ≥ 1, by bisection of P(Binomial(a + b − 1, x) ≥ a)."""
    n = a + b - 1
    j = np.arange(a)
    choose = np.array([math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in range(a)])
    low, high = 0.0, 1.0
    for _ in range(60):
        x = (low + high) / 2
        fewer = float(np.exp(choose + j * math.log(x) + (n - j) * math.log1p(-x)).sum())
        low, high = (x, high) if 1 - fewer < probability else (low, x)
    return (low + high) / 2


def _kolmogorov_smirnov(n: int, m: int, gap: int) -> float:
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


def _budget(level: float, n: int) -> int:
    """⌊α(n + 1)⌋, forgiving products such as 0.29 · 100 = 28.999…96."""
    if not 0 < level < 1:
        raise CalibrationError(f"a level lies in (0, 1), got {level}")
    return min(math.floor(level * (n + 1) + 1e-9), n)


def _too_few(level: float, n: int, what: str, name: str) -> CalibrationError:
    needed = math.ceil(1 / level - 1e-9) - 1
    return CalibrationError(
        f"a {name} of {level:g} needs at least {needed} {what}, got {n}: add {needed - n} more, "
        f"or ask for {1 / (n + 1):.2g} or more"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
