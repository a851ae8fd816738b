"""What could be chance: tails, intervals, and what so many images could have shown. The same for all questions."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

Floats = NDArray[np.float64]
LEVEL = 0.01  # chance of a false finding, for each question as a whole
POWER = 0.8  # chance of finding what is called detectable
FEWEST = 5  # images: from fewer, the mean of a group says nothing about the group
ODDS = f"(false alarms in {LEVEL:.0%} of audits, misses in {1 - POWER:.0%})"  # of what is said to be noticed


def mean_interval(values: Floats, error: float) -> tuple[float, float]:
    """Student's two-sided interval of the mean.

    Args:
        values: (n,) independent values; fewer than two give the whole line.
        error: probability in (0, 1) with which the interval misses the mean of normally distributed values.

    Returns:
        Lower and upper end.
    """
    half = float(stats.t.isf(error / 2, len(values) - 1)) * _standard_error(values) if len(values) > 1 else math.inf
    middle = float(values.mean()) if len(values) else 0.0
    return middle - half, middle + half


def detectable(values: Floats, error: float) -> float:
    """The smallest shift of the mean that `mean_interval` would tell from nothing with probability `POWER`.

    Args:
        values: (n,) independent values; their spread, not their mean, counts. Fewer than two give infinity.
        error: probability in (0, 1) with which the interval may miss.

    Returns:
        A shift ≥ 0, in the unit of the values: the standard error times the noncentrality at which Student's t
        exceeds its critical value in `POWER` of all cases.
    """
    degrees = len(values) - 1
    if degrees < 1:
        return math.inf
    critical = float(stats.t.isf(error / 2, degrees))
    wanted = optimize.brentq(lambda shift: stats.nct.sf(critical, degrees, shift) - POWER, 0.0, 5 * critical + 5)
    return float(wanted) * _standard_error(values)


def detectable_auroc(good: int, anomalous: int, error: float) -> float:
    """The smallest AUROC that `metrics.auroc_interval` would tell from 0.5 with probability `POWER`.

    Args:
        good, anomalous: how many images of either class there are, at least `fewest_for_auroc(error)` each.
        error: probability in (0, 1) with which the interval may miss.

    Returns:
        In (0.5, 1], to the nearest thousandth; 1 where only a perfect order is enough. The AUROC's variance is that
        of Hanley and McNeil (1982), and as in the interval it counts on the logit scale.
    """
    area = np.arange(0.501, 0.999, 0.001)
    one, two = area / (2 - area), 2 * area**2 / (1 + area)
    variance = area * (1 - area) + (anomalous - 1) * (one - area**2) + (good - 1) * (two - area**2)
    spread = np.sqrt(variance / (good * anomalous)) / (area * (1 - area))
    logit = np.log(area / (1 - area))
    flagged = logit[logit > stats.norm.isf(error / 2) * spread]
    if not len(flagged):
        return 1.0
    enough = area[logit - stats.norm.ppf(POWER) * spread >= flagged[0]]
    return float(enough[0]) if len(enough) else 1.0


def fewest_for_auroc(error: float) -> int:
    """How many images of each class it takes for a perfect AUROC to be told from 0.5 (see `metrics.auroc_interval`)."""
    return math.floor(math.log2(2 / error)) + 1


def binomial_tail(successes: int, trials: int, probability: float = 0.5) -> float:
    """P(X ≥ `successes`) for X the number of successes in `trials`, each with `probability` in [0, 1]."""
    return float(stats.binom.sf(successes - 1, trials, probability))


def hypergeometric_tail(hits: int, drawn: int, size: int, total: int) -> float:
    """Fisher's exact test: P(at least `hits` of `drawn` images come from a class of `size` among `total`)."""
    return float(stats.hypergeom.sf(hits - 1, total, size, drawn))


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1)) / math.sqrt(len(values))
