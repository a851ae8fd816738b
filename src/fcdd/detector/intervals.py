"""How far a rate that was counted may be from the true one. Without scipy: an exported model needs numpy alone."""

from __future__ import annotations

import math

import numpy as np

CONFIDENCE = 0.95


def clopper_pearson(count: int, trials: int) -> tuple[float, float]:
    """The interval that holds the true rate in at least 95 % of cases, when `count` of `trials` were counted.

    Its ends are the rates at which so many, or so few, would be seen in 2.5 % of cases. Without trials it is [0, 1].
    """
    tail = (1 - CONFIDENCE) / 2
    low = beta_quantile(tail, count, trials - count + 1) if count else 0.0
    high = beta_quantile(1 - tail, count + 1, trials - count) if count < trials else 1.0
    return low, high


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
