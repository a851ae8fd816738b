"""What could be chance: exact tails and intervals, the same for all questions of the audit."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LEVEL = 0.01  # chance of a false finding, for each question as a whole


def mean_interval(values: Floats, error: float) -> tuple[float, float]:
    """Two-sided interval of the mean that misses it with probability `error`; Student's, by t ≈ z + (z³ + z)/4ν."""
    if len(values) < 3:
        return -math.inf, math.inf
    z = NormalDist().inv_cdf(1 - error / 2)
    t = z + (z**3 + z) / (4 * (len(values) - 1))
    half = t * float(values.std(ddof=1)) / math.sqrt(len(values))
    return float(values.mean()) - half, float(values.mean()) + half


def binomial_tail(successes: int, trials: int, probability: float = 0.5) -> float:
    """P(X ≥ successes) of a binomial."""
    if successes <= 0:
        return 1.0
    logs = [
        _log_choose(trials, i) + i * math.log(probability) + (trials - i) * math.log1p(-probability)
        for i in range(successes, trials + 1)
    ]
    return min(1.0, math.fsum(math.exp(value) for value in logs))


def all_of_one_class(drawn: int, size: int, total: int) -> float:
    """P(all of `drawn` images come from a class of `size` among `total`), were they drawn blindly."""
    if drawn > size:
        return 0.0
    return math.exp(_log_choose(size, drawn) - _log_choose(total, drawn))


def hypergeometric_tail(hits: int, drawn: int, size: int, total: int) -> float:
    """P(at least `hits` of `drawn` images come from a class of `size` among `total`): Fisher's exact test."""
    most = min(drawn, size)
    logs = [
        _log_choose(size, i) + _log_choose(total - size, drawn - i) - _log_choose(total, drawn)
        for i in range(max(hits, drawn - (total - size)), most + 1)
    ]
    return min(1.0, math.fsum(math.exp(value) for value in logs))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
