"""Where a threshold may stand, and how it is chosen from scores of good parts and of defects.

An image scores a little differently in another batch or runtime, some parts in 100,000. A threshold that stood on a
score would give that image one verdict here and another there, so thresholds keep away from every score that is known:
scores closer together than twice `TIE` are one group, and thresholds stand between groups.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fcdd.errors import CalibrationError

Floats = npt.NDArray[np.float64]
TIE = 1e-4  # the share of itself by which a score may differ and still be the same


def edges(scores: Sequence[float]) -> Floats:
    """For ascending scores (n,) the upper edge of each one's group (n,), ascending: an image that scores above it
    scores higher than the whole group, in every batch and runtime."""
    values = np.asarray(scores, np.float64)
    apart = _apart(values)
    tops = values[np.append(apart, True)]
    return np.asarray(tops[np.concatenate([[0], np.cumsum(apart)])] * (1 + TIE))


def clear(threshold: float, known: Sequence[float]) -> float:
    """The threshold, or the upper edge of the group of known scores that it stands in."""
    bottoms, tops = _groups(known)
    inside = (threshold > bottoms * (1 - TIE)) & (threshold < tops * (1 + TIE))
    return float(tops[inside][-1] * (1 + TIE)) if inside.any() else threshold


def by_miss_rate(good: Sequence[float], defects: Sequence[float], rate: float) -> float:
    """The highest threshold that a defect stays below with probability ≤ rate; conformal on labelled defects."""
    allowed = budget(rate, len(defects))
    if allowed < 1:
        raise too_few(rate, len(defects), "defects", "miss rate")
    bottoms, _ = _groups([*good, *defects])
    return _below(float(bottoms[bottoms <= sorted(defects)[allowed - 1]][-1]))


def by_f1(good: Sequence[float], defects: Sequence[float]) -> float:
    """The threshold with the best 2TP / (2TP + FP + FN), where a defect above it is a true positive."""
    if not defects:
        raise CalibrationError("the best F1 needs defects")
    gaps = _gaps([*good, *defects])
    false, true = _above(good, gaps), _above(defects, gaps)
    return float(gaps[np.argmax(2 * true / (true + false + len(defects)))])


def by_cost(
    good: Sequence[float], defects: Sequence[float], *, false_reject: float, escape: float, prior: float
) -> float:
    """The threshold with the least expected cost a part.

    (1 − prior) · false_reject · P(s > t | good) + prior · escape · P(s ≤ t | defect), with both probabilities as
    counted on `good` and on `defects`; prior is the share of defects on the line.
    """
    if not (defects and 0 < prior < 1 and false_reject >= 0 and escape >= 0):
        raise CalibrationError("a cost threshold needs defects, a prior in (0, 1) and costs ≥ 0")
    gaps = _gaps([*good, *defects])
    rejected, missed = _above(good, gaps) / len(good), 1 - _above(defects, gaps) / len(defects)
    return float(gaps[np.argmin((1 - prior) * false_reject * rejected + prior * escape * missed)])


def budget(level: float, n: int) -> int:
    """⌊α(n + 1)⌋, at most n, forgiving products such as 0.29 · 100 = 28.999…96."""
    if not 0 < level < 1:
        raise CalibrationError(f"a level lies in (0, 1), got {level}")
    return min(int(level * (n + 1) + 1e-9), n)


def too_few(level: float, n: int, what: str, name: str) -> CalibrationError:
    needed = int(np.ceil(1 / level - 1e-9)) - 1
    return CalibrationError(
        f"a {name} of {level:g} needs at least {needed} {what}, got {n}: add {needed - n} more, "
        f"or ask for {1 / (n + 1):.2g} or more"
    )


def _apart(ascending: Floats) -> npt.NDArray[np.bool_]:
    """Whether each score but the first begins a new group, (n − 1,)."""
    return np.asarray(ascending[1:] > ascending[:-1] * (1 + 2 * TIE))


def _groups(known: Sequence[float]) -> tuple[Floats, Floats]:
    """The lowest and the highest score of each group, ascending."""
    values = np.sort(np.asarray(known, np.float64))
    apart = _apart(values)
    return values[np.concatenate([[True], apart])], values[np.append(apart, True)]


def _gaps(known: Sequence[float]) -> Floats:
    """A threshold below all groups, one midway between each two, and one above all."""
    bottoms, tops = _groups(known)
    return np.concatenate([[_below(float(bottoms[0]))], (tops[:-1] + bottoms[1:]) / 2, tops[-1:] * (1 + TIE)])


def _below(score: float) -> float:
    """Just below a group that begins with this score; below 0 where it is 0."""
    return score * (1 - TIE) if score > 0 else -TIE


def _above(scores: Sequence[float], thresholds: Floats) -> Floats:
    """How many scores lie above each threshold."""
    return np.asarray(len(scores) - np.searchsorted(np.sort(scores), thresholds, "right"), np.float64)
