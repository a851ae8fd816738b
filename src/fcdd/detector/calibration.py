"""From scores to decisions: conformal p-values, the limits of OK, REVIEW and NG, and what they promise.

Good images that took no part in training give calibration scores s₁ … sₙ. If the next good part comes from the same
process, its score is equally likely to take any rank among them, whatever the scores' distribution. That alone yields
every guarantee below; none of them needs a defect, and none holds once the process has drifted. An image is rejected
when its score is *above* a threshold.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Self

from fcdd.detector.intervals import beta_quantile, clopper_pearson
from fcdd.detector.thresholds import budget, edges, too_few
from fcdd.errors import CalibrationError

BY_HAND = "by hand"
REQUIRED, LATER = {"scores", "review", "reject", "reject_above"}, {"way", "defects", "usual"}  # keys; schema 3 has both


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

    def verdict(self, score: float) -> Verdict:
        if score > self.reject:
            return Verdict.NG
        return Verdict.REVIEW if score > self.review else Verdict.OK


@dataclass(frozen=True)
class Rate:
    """So many of so many images, and where the true rate lies with 95 % confidence (Clopper and Pearson)."""

    count: int
    images: int

    def __str__(self) -> str:
        low, high = clopper_pearson(self.count, self.images)
        counted = f"{self.count} of {self.images} ({_percent(self.count / self.images)})"
        return f"{counted}; of all such parts between {_percent(low)} and {_percent(high)}, with 95 % confidence"


@dataclass(frozen=True)
class Calibration:
    """All that turns a score into a decision: limits, p-value, and the sentence that says what they promise.

    The limits follow from the levels, unless `reject_above` is given: a threshold that was found with labelled defects
    or by hand. No limit stands on a calibration score (see `fcdd.detector.thresholds`).
    """

    scores: tuple[float, ...]  # of held-out good images, ascending
    review: float = 0.05  # the level at which a part goes to review
    reject: float = 0.01  # the level at which it is rejected
    reject_above: float | None = None
    way: str = ""  # how `reject_above` was found, as in "by hand"
    defects: tuple[float, ...] = ()  # scores of the defects that were shown when `reject_above` was set, ascending
    usual: float = 0.0  # what a cell of a good part usually has

    def __post_init__(self) -> None:
        if not self.scores or not all(math.isfinite(score) and score >= 0 for score in self.scores + self.defects):
            raise CalibrationError("calibration needs at least one score, all finite and not negative")
        if not 0 < self.reject <= self.review < 1:
            raise CalibrationError(f"levels need 0 < reject ≤ review < 1, got {self.reject} and {self.review}")
        if not math.isfinite(self.usual) or self.usual < 0:
            raise CalibrationError(f"the usual heat must be finite and not negative, got {self.usual}")
        if self.reject_above is not None and not math.isfinite(self.reject_above):
            raise CalibrationError(f"reject_above must be finite, got {self.reject_above}")
        object.__setattr__(self, "scores", tuple(sorted(float(score) for score in self.scores)))
        object.__setattr__(self, "defects", tuple(sorted(float(score) for score in self.defects)))

    def p_value(self, score: float) -> float:
        """(1 + #{sᵢ ≥ score}) / (n + 1): how often a good part scores this high. P(p ≤ α) ≤ α for good parts.

        Scores of one group count as equal, which only ever raises p-values; so p ≤ α just where score > threshold(α).
        """
        if math.isnan(score):
            raise CalibrationError("the score is NaN")
        return (1 + len(self.scores) - bisect_left(self._edges, score)) / (len(self.scores) + 1)

    def threshold(self, level: float) -> float:
        """The lowest threshold that a good part exceeds with probability ≤ α: just above the ⌈(1 − α)(n + 1)⌉-th
        smallest sᵢ and what counts as equal to it."""
        return self._edges[-self._allowed(level)]

    @cached_property
    def limits(self) -> Limits:
        """The thresholds in force: by their levels, unless the reject threshold was set from defects or by hand."""
        reject = self.threshold(self.reject) if self.reject_above is None else self.reject_above
        return Limits(min(self.threshold(self.review), reject), reject)

    def verdict(self, score: float) -> Verdict:
        """What the limits say; where they follow from the levels: NG for p ≤ reject, REVIEW for p ≤ review, else OK."""
        if math.isnan(score):
            raise CalibrationError("the score is NaN")
        return self.limits.verdict(score)

    @property
    def promise(self) -> str:
        """What the reject threshold in force promises; one that was set says what it does to the known images."""
        if self.reject_above is None:
            return str(self.guarantee(self.reject))
        told = [
            f"Rejects above {self.reject_above:.4g}, a threshold that was set {self.way or 'from defects or by hand'}.",
            f"Good calibration images rejected: {self.rejected}.",
        ]
        if self.passed is not None:
            told.append(f"Defects not rejected: {self.passed}.")
            if self.way != BY_HAND:
                told.append("The threshold was chosen on these very defects: others may fare worse.")
        return " ".join([*told, "Nothing more is promised."])

    @property
    def rejected(self) -> Rate:
        """How many of the calibration images score above the reject limit."""
        return Rate(sum(score > self.limits.reject for score in self.scores), len(self.scores))

    @property
    def passed(self) -> Rate | None:
        """How many of the known defects do not; None where none are known."""
        missed = sum(score <= self.limits.reject for score in self.defects)
        return Rate(missed, len(self.defects)) if self.defects else None

    def guarantee(self, level: float) -> Guarantee:
        """What `threshold(level)` promises. With k = ⌊α(n + 1)⌋ the realised rate follows Beta(k, n + 1 − k)."""
        n, k = len(self.scores), self._allowed(level)
        low, high = beta_quantile(0.05, k, n + 1 - k), beta_quantile(0.95, k, n + 1 - k)
        return Guarantee(level, n, k / (n + 1), low, high, 1 / (n + 1))

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; `from_dict` gives back an equal object."""
        levels = {"review": self.review, "reject": self.reject, "reject_above": self.reject_above}
        known = {"way": self.way, "defects": list(self.defects), "usual": self.usual}
        return {"scores": list(self.scores), **levels, **known}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Validated: CalibrationError where a key or a value is not what `to_dict` writes, now or in schema 1 or 2."""
        keys = set(data) if isinstance(data, Mapping) else set()
        if not REQUIRED <= keys <= REQUIRED | LATER:
            raise CalibrationError(f"calibration data needs scores, review, reject and reject_above, got {data!r:.200}")
        scores, defects, way, limit = data["scores"], data.get("defects", []), data.get("way", ""), data["reject_above"]
        if not (isinstance(scores, list) and isinstance(defects, list) and isinstance(way, str)):
            raise CalibrationError("calibration data needs scores and defects as lists and the way as a text")
        numbers = [*scores, *defects, data["review"], data["reject"], data.get("usual", 0.0)]
        if not all(_is_number(number) for number in [*numbers, *([] if limit is None else [limit])]):
            raise CalibrationError("calibration data holds something that is not a number")
        return cls(tuple(scores), data["review"], data["reject"], limit, way, tuple(defects), data.get("usual", 0.0))

    @cached_property
    def _edges(self) -> list[float]:
        return list(map(float, edges(self.scores)))

    def _allowed(self, level: float) -> int:
        """How many of n + 1 exchangeable good parts may be rejected at this level, at least 1."""
        allowed = budget(level, len(self.scores))
        if allowed < 1:
            raise too_few(level, len(self.scores), "good images", "false-reject level")
        return allowed


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else "100 %"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
