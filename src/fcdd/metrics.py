"""Ranking metrics: AUROC, average precision, F1, AUPRO, and their curves, exact for images and streaming for pixels.

Scores are higher where more anomalous; label or mask True is anomalous. One rule everywhere: an image or pixel is
called anomalous when its score is *above* the threshold.

Pixels are too many to sort. The bit pattern of a non-negative float32 grows with its value, so its top bits are a
histogram bin that needs no range chosen beforehand, and resolves 1 part in 2048 at any magnitude.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from fcdd.regions import components

Floats = npt.NDArray[np.float64]
SHIFT = 12  # low bits of the float32 pattern to drop: 11 of 23 mantissa bits stay
BINS = 0x7F800000 >> SHIFT  # the pattern of +inf; every finite score falls below it
CHUNK = 1 << 20  # pixels counted at a time: the index of more would be written to memory and read back
CURVE_POINTS = 200


@dataclass(frozen=True)
class Ranking:
    """How many nominal and anomalous samples have each distinct score; every metric is a function of these counts.

    All fields are (K,), in ascending order of score. Scores of class k and after are above cuts[k], those before
    are not; ends[k] is the largest score of class k. `nominal` and `anomalous` are counts.
    """

    cuts: Floats
    ends: Floats
    nominal: Floats
    anomalous: Floats

    def _above(self) -> tuple[Floats, Floats]:
        """False and true positives (K + 1,), from the highest threshold (none) to the lowest (all)."""
        return _running(self.nominal[::-1]), _running(self.anomalous[::-1])

    def auroc(self) -> float:
        """P(anomalous > nominal) + ½ P(equal), in [0, 1]; nan where one of the two is missing."""
        return _area(self.nominal, self.anomalous)

    def average_precision(self) -> float:
        """Σ (recallₖ − recallₖ₋₁) · precisionₖ over falling thresholds; nan without anomalous samples."""
        false, true = self._above()
        if true[-1] == 0:
            return float("nan")
        return float(np.sum(np.diff(true) * true[1:] / (false + true)[1:]) / true[-1])

    def best_f1(self) -> tuple[float, float]:
        """The largest 2TP / (2TP + FP + FN) and the threshold that gives it."""
        false, true = self._above()
        if true[-1] == 0:
            return float("nan"), float("nan")
        f1 = 2 * true / (true + false + true[-1])
        best = int(np.argmax(f1))
        return float(f1[best]), float(self.cuts[-best])

    def roc_curve(self, points: int = CURVE_POINTS) -> Floats:
        """(≤ points, 2): false and true positive rate, from (0, 0) to (1, 1)."""
        false, true = self._above()
        return _thin(np.stack([false / false[-1], true / true[-1]], axis=1), points)

    def pr_curve(self, points: int = CURVE_POINTS) -> Floats:
        """(≤ points, 2): recall and precision, in order of falling threshold."""
        false, true = self._above()
        return _thin(np.stack([true[1:] / true[-1], true[1:] / (false + true)[1:]], axis=1), points)


def rank(scores: npt.ArrayLike, labels: npt.ArrayLike) -> Ranking:
    """The exact ranking of few samples, for example images. scores (N,), labels (N,) of 0 and 1."""
    values, truth = np.asarray(scores, np.float64).ravel(), np.asarray(labels).ravel().astype(bool)
    if values.shape != truth.shape:
        raise ValueError(f"{values.size} scores but {truth.size} labels")
    if np.isnan(values).any():
        raise ValueError("a score is NaN")
    distinct, index = np.unique(values, return_inverse=True)
    counts = np.bincount(index + distinct.size * truth, minlength=2 * distinct.size).astype(np.float64)
    below = np.nextafter(distinct, -np.inf)  # the middle of two neighbouring floats may round up to the upper one
    cuts = np.minimum(below, np.concatenate([below[:1], (distinct[:-1] + distinct[1:]) / 2]))
    return Ranking(cuts, distinct, counts[: distinct.size], counts[distinct.size :])


def auroc(scores: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    """Exact AUROC with ties counted half; nan where only one class is present, ValueError on NaN scores."""
    return rank(scores, labels).auroc()


def best_f1(scores: npt.ArrayLike, labels: npt.ArrayLike) -> tuple[float, float]:
    """The best F1 over all thresholds, and the threshold that gives it."""
    return rank(scores, labels).best_f1()


def auroc_interval(scores: npt.ArrayLike, labels: npt.ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """DeLong's confidence interval of the AUROC, on the logit scale so that it stays inside [0, 1].

    Var = var(V₁)/m + var(V₀)/n with V₁ the share of nominal scores below each anomalous one and V₀ the share of
    anomalous scores above each nominal one. Where the classes separate perfectly that variance is 0; min(m, n)
    disjoint pairs are independent draws that all succeeded, which gives the exact binomial bound used then.
    """
    values, truth = np.asarray(scores, np.float64).ravel(), np.asarray(labels).ravel().astype(bool)
    area, good, bad = auroc(values, truth), np.sort(values[~truth]), np.sort(values[truth])
    tail = (1 - level) / 2
    if area in (0.0, 1.0):
        bound = float(tail ** (1 / min(good.size, bad.size)))
        return (bound, 1.0) if area == 1 else (0.0, 1 - bound)
    if min(good.size, bad.size) < 2:
        return (float("nan"), float("nan")) if np.isnan(area) else (0.0, 1.0)
    variance = _placements(bad, good).var(ddof=1) / bad.size + _placements(good, bad).var(ddof=1) / good.size
    half = NormalDist().inv_cdf(1 - tail) * float(np.sqrt(variance)) / (area * (1 - area))
    low, high = np.log(area / (1 - area)) + np.array([-half, half])
    return float(1 / (1 + np.exp(-low))), float(1 / (1 + np.exp(-high)))


def auroc_difference(
    first: npt.ArrayLike, second: npt.ArrayLike, labels: npt.ArrayLike, level: float = 0.95
) -> tuple[float, float, float]:
    """AUROC of `second` minus that of `first` on the same images, and DeLong's interval for paired samples.

    Var = var(V₁′ − V₁)/m + var(V₀′ − V₀)/n with the placements V of `auroc_interval` under each of the two. Where both
    rank all pairs alike that variance is 0; what min(m, n) disjoint pairs without any disagreement leave possible, by
    the exact binomial bound, is the interval then.
    """
    truth = np.asarray(labels).ravel().astype(bool)
    above, below, areas = [], [], []
    for scores in (first, second):
        values = np.asarray(scores, np.float64).ravel()
        above.append(_placements(values[truth], np.sort(values[~truth])))
        below.append(_placements(values[~truth], np.sort(values[truth])))
        areas.append(auroc(values, truth))
    difference, tail = areas[1] - areas[0], (1 - level) / 2
    m, n = above[0].size, below[0].size
    gaps = above[1] - above[0], below[1] - below[0]
    if min(m, n) < 2 or not (gaps[0].any() or gaps[1].any()):
        bound = 1 - float(tail ** (1 / min(m, n)))
        return difference, max(difference - bound, -1.0), min(difference + bound, 1.0)
    half = NormalDist().inv_cdf(1 - tail) * float(np.sqrt(gaps[0].var(ddof=1) / m + gaps[1].var(ddof=1) / n))
    return difference, max(difference - half, -1.0), min(difference + half, 1.0)


class PixelHistogram:
    """Pixel scores pooled over images, in constant memory (8 MB); every metric follows from `ranking`."""

    def __init__(self) -> None:
        self._all = np.zeros(BINS, np.int64)
        self._anomalous = np.zeros(BINS, np.int64)

    def update(self, scores: npt.NDArray[np.float32], mask: npt.NDArray[np.bool_]) -> None:
        """Add pixels. scores: any shape, float32, finite, ≥ 0. mask: same shape, True is anomalous."""
        if scores.shape != mask.shape:
            raise ValueError(f"scores {scores.shape} and mask {mask.shape} differ in shape")
        scores, mask = scores.ravel(), mask.ravel()
        for start in range(0, scores.size, CHUNK):
            low, everything, anomalous = _histogram(scores[start : start + CHUNK], mask[start : start + CHUNK])
            self._all[low : low + everything.size] += everything
            self._anomalous[low : low + anomalous.size] += anomalous

    def ranking(self) -> Ranking:
        """The counts seen so far; a bin stands for one distinct score."""
        used = np.flatnonzero(self._all)
        anomalous = self._anomalous[used].astype(np.float64)
        return Ranking(_below(used), _below(used + 1), self._all[used] - anomalous, anomalous)

    def auroc(self) -> float:
        """Pooled pixel AUROC, within about 1e-7 of the exact one for continuous scores."""
        return self.ranking().auroc()


class PixelMean:
    """Mean over the anomalous images of each image's own pixel AUROC, as the paper words it."""

    def __init__(self) -> None:
        self._areas: list[float] = []

    def update(self, scores: npt.NDArray[np.float32], mask: npt.NDArray[np.bool_]) -> None:
        """Add one image (H, W). One without both nominal and anomalous pixels has no AUROC and does not count."""
        _, everything, anomalous = _histogram(scores, mask)
        anomalous = np.pad(anomalous, (0, everything.size - anomalous.size))
        area = _area((everything - anomalous).astype(np.float64), anomalous.astype(np.float64))
        if not np.isnan(area):
            self._areas.append(area)

    def auroc(self) -> float:
        """The mean; nan before any image counted."""
        return float(np.mean(self._areas)) if self._areas else float("nan")


class Aupro:
    """Area under the per-region overlap curve, streaming.

    PRO(t) = mean over 8-connected anomalous regions of the share of the region above t; FPR(t) = share of all
    nominal pixels above t. The area of PRO over FPR in [0, limit], divided by limit, lies in [0, 1]. A histogram
    in which each anomalous pixel weighs 1 / (area of its region) gives PRO as a running sum.
    """

    def __init__(self, limit: float = 0.3) -> None:
        if not 0 < limit <= 1:
            raise ValueError(f"the false positive limit lies in (0, 1], got {limit}")
        self.limit = limit
        self._nominal = np.zeros(BINS, np.int64)
        self._overlap = np.zeros(BINS, np.float64)
        self._regions = 0

    def update(self, scores: npt.NDArray[np.float32], mask: npt.NDArray[np.bool_]) -> None:
        """Add one image (H, W); good images, with an empty mask, count towards FPR."""
        low, everything, anomalous = _histogram(scores, mask)
        self._nominal[low : low + everything.size] += everything
        self._nominal[low : low + anomalous.size] -= anomalous
        if anomalous.size:
            labels, count = components(mask)
            inside = labels[mask]
            weights = 1 / np.bincount(inside, minlength=count + 1)[inside]
            added = np.bincount(_bins(scores[mask]) - low, weights)
            self._overlap[low : low + added.size] += added
            self._regions += count

    def aupro(self) -> float:
        """The normalised area; nan without a region or without nominal pixels."""
        used = np.flatnonzero((self._nominal > 0) | (self._overlap > 0))[::-1]
        if not self._regions or not self._nominal.any():
            return float("nan")
        fpr = _running(self._nominal[used].astype(np.float64)) / self._nominal.sum()
        pro = _running(self._overlap[used]) / self._regions
        inside = fpr <= self.limit
        x = np.append(fpr[inside], self.limit)
        y = np.append(pro[inside], np.interp(self.limit, fpr, pro))
        return float(np.trapezoid(y, x) / self.limit)


def _bins(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.intp]:
    """Histogram bins of float32 scores ≥ 0, flat; ValueError where a score is negative, NaN or infinite."""
    flat = np.ascontiguousarray(scores, np.float32).ravel()
    bits = flat.view(np.uint32)
    if bits.size and bits.max() >= 0x7F800000:  # +inf, NaN, or the sign bit
        if not (np.isfinite(flat).all() and flat.min() >= 0):
            raise ValueError("scores must be finite and not negative")
        bits = (flat + np.float32(0)).view(np.uint32)  # −0 becomes +0
    return (bits >> np.uint32(SHIFT)).astype(np.intp)


def _histogram(
    scores: npt.NDArray[np.float32], mask: npt.NDArray[np.bool_]
) -> tuple[int, npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """First bin, and from it on the counts of all and of the anomalous pixels (which may end earlier, or be empty).

    Anomalous pixels are few, so counting them apart costs less than widening every index by its label.
    """
    if scores.shape != mask.shape or mask.dtype != np.bool_:
        raise ValueError(f"scores {scores.shape} need a bool mask of their shape, got {mask.dtype} {mask.shape}")
    if not scores.size:
        return 0, np.zeros(0, np.intp), np.zeros(0, np.intp)
    index = _bins(scores)
    low = int(index.min())
    index -= low  # bincount starts at 0: without the empty bins below, its counts stay in the cache
    inside = index[mask.ravel()]
    return low, np.bincount(index), np.bincount(inside) if inside.size else inside


def _below(bins: npt.NDArray[np.intp]) -> Floats:
    """The largest float32 under each bin."""
    edges = (bins.astype(np.uint32) << np.uint32(SHIFT)).view(np.float32)
    return np.nextafter(edges, np.float32(-np.inf)).astype(np.float64)


def _running(counts: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(counts)])


def _area(nominal: Floats, anomalous: Floats) -> float:
    """AUROC of counts (K,) in ascending order of score: each anomalous sample beats those below and half its equals."""
    pairs = float(nominal.sum()) * float(anomalous.sum())
    return float(np.dot(np.cumsum(nominal) - nominal / 2, anomalous)) / pairs if pairs else float("nan")


def _placements(scores: Floats, sorted_others: Floats) -> Floats:
    """The share of the others below each score, equals counted half."""
    below, up_to = (np.searchsorted(sorted_others, scores, side) for side in ("left", "right"))
    shares: Floats = (below + up_to) / (2 * sorted_others.size)
    return shares


def _thin(curve: Floats, points: int) -> Floats:
    """At most `points` of a curve (K, 2), evenly along its length, both ends kept, so that steep parts keep shape."""
    if len(curve) <= points:
        return curve
    length = _running(np.abs(np.diff(curve, axis=0)).sum(axis=1))
    wanted = np.linspace(0, length[-1], points)
    index = np.unique(np.searchsorted(length, wanted, side="left").clip(0, len(curve) - 1))
    index[-1] = len(curve) - 1
    return np.asarray(curve[index])
