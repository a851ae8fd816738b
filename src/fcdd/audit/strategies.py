"""Strategies: which ways of scoring high there are (SpRAy, Lapuschkin et al. 2019).

Maps of similar shape join by spectral clustering: a graph of nearest neighbours, the eigenvectors of its normalised
Laplacian L = I − D^−½ W D^−½ to the smallest eigenvalues, and k-means on their rows. The number of clusters is where
the eigenvalues jump (eigengap). A small, focused cluster of one label is where a Clever Hans would show.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.sparse import csgraph
from sklearn.cluster import KMeans
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import normalize

from .chance import LEVEL, hypergeometric_tail
from .evidence import Evidence
from .findings import Finding, Illustration, Question, Severity

SIDE = 12  # cells of the downsized maps along the longer side
NEIGHBOURS = 8
MOST = 8  # clusters
SMALL, FOCUSED = 0.4, 0.25  # share of the images; share of the image that holds the heat
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Cluster:
    """Images that score in the same way. `focus` is the share of the cells that hold their mean heat (`focus`)."""

    members: NDArray[np.intp]
    focus: float
    kind: str  # the most frequent one
    purity: float  # its share
    anomalous: float  # share of anomalous images
    chance: float  # of so many anomalous ones, were labels dealt blindly


def answer(evidence: Evidence, quiet: bool) -> list[Finding]:
    """One finding for the clusters together, flagged ones first, or that there are too few images to say."""
    if len(evidence.cells) < 3 * NEIGHBOURS:
        return [_too_few(f"{len(evidence.cells)} images are fewer than the {3 * NEIGHBOURS} that groups need.")]
    clusters = _described(evidence, spectral(_maps(evidence), MOST))
    flagged = [c for c in clusters if is_suspicious(c, len(evidence.cells), len(clusters))]
    ordered = flagged + [c for c in clusters if not any(c is f for f in flagged)]
    shown = [image for cluster in ordered for image in _images(evidence, cluster)]
    listed = "; ".join(_sentence(c) for c in ordered)
    needed = fewest_members(len(evidence.bad), len(evidence.cells), len(clusters))
    if needed is None:
        return [
            _too_few(
                f"With {len(evidence.bad)} anomalous of {len(evidence.cells)} images in {len(clusters)} groups, no "
                f"small group of anomalous ones could be told from chance (false alarms in {LEVEL:.0%} of audits).",
                f"The maps fall into {len(clusters)} groups: {listed}.",
                shown,
            )
        ]
    power = (
        f"With {len(evidence.bad)} anomalous of {len(evidence.cells)} images, a group of {needed} anomalous images or "
        f"more would be told from chance (false alarms in {LEVEL:.0%} of audits)."
    )
    if flagged:
        return [
            Finding(
                Question.STRATEGIES,
                Severity.LOW,
                f"{len(flagged)} of {len(clusters)} strategies small, focused and of one label",
                f"The maps fall into {len(clusters)} groups, the suspicious ones first: {listed}.",
                "Look at the examples: is what is hot there the defect? If it is not, see the recurring cue above.",
                shown,
                effect=max(1 - c.focus for c in flagged),
                figures={f"size_{i}": len(c.members) for i, c in enumerate(ordered)},
                power=power,
            )
        ]
    return [
        Finding(
            Question.STRATEGIES,
            Severity.NONE,
            f"{len(clusters)} strategies, none suspicious",
            f"The maps fall into {len(clusters)} groups: {listed}.",
            "Nothing to do.",
            shown,
            power=power,
        )
    ]


def fewest_members(anomalous: int, total: int, clusters: int) -> int | None:
    """The smallest group of anomalous images alone that chance does not explain; None where there can be none.

    Args:
        anomalous, total: how many images are anomalous, and how many there are.
        clusters: number of groups that are asked.
    """
    possible = range(1, min(anomalous, int(SMALL * total)) + 1)
    return next((n for n in possible if hypergeometric_tail(n, n, anomalous, total) < LEVEL / clusters), None)


def _too_few(power: str, sentence: str = "", images: list[Illustration] | None = None) -> Finding:
    return Finding(
        Question.STRATEGIES,
        Severity.UNKNOWN,
        "Too few to say whether a strategy is suspicious",
        sentence or "The maps were not put into groups.",
        "Give more images, anomalous ones above all.",
        images or [],
        power=power,
    )


def is_suspicious(cluster: Cluster, total: int, clusters: int) -> bool:
    """Whether a cluster, one of `clusters` over `total` images, is small, focused and anomalous beyond chance."""
    small = len(cluster.members) <= SMALL * total
    return small and cluster.focus <= FOCUSED and cluster.anomalous > 0.9 and cluster.chance < LEVEL / clusters


def spectral(points: Floats, most: int) -> NDArray[np.intp]:
    """Spectral clustering with as many clusters as the eigengap says.

    Args:
        points: (N, D), N ≥ 3.
        most: the largest number of clusters, at least 2.

    Returns:
        Labels (N,), numbered from 0.
    """
    nearest = kneighbors_graph(points, min(NEIGHBOURS, len(points) - 1)).toarray()
    graph = np.maximum(nearest, nearest.T)
    values, vectors = linalg.eigh(csgraph.laplacian(graph, normed=True))
    clusters = 2 + int(np.argmax(np.diff(values[1 : most + 1])))
    rows = normalize(vectors[:, :clusters])
    return np.asarray(KMeans(clusters, n_init=10, random_state=0).fit_predict(rows), np.intp)


def _maps(evidence: Evidence) -> Floats:
    """Downsized maps (N, ·) that add up to one: their shape counts, not their strength."""
    height, width = evidence.cells.shape[1:]
    step = max(1, -(-max(height, width) // SIDE))
    excess = np.maximum(evidence.cells - np.float32(evidence.detector.calibration.usual), 0)
    rows, columns = np.arange(0, height, step), np.arange(0, width, step)
    small = np.add.reduceat(np.add.reduceat(excess, rows, 1), columns, 2).reshape(len(excess), -1).astype(np.float64)
    return np.asarray(small / np.maximum(small.sum(1, keepdims=True), 1e-12))


def _described(evidence: Evidence, labels: NDArray[np.intp]) -> list[Cluster]:
    """The clusters with what they hold, the most focused first."""
    found = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        excess = np.maximum(evidence.cells[members].mean(0) - evidence.detector.calibration.usual, 0).astype(np.float64)
        kind, most = Counter(evidence.kinds[int(i)] for i in members).most_common(1)[0]
        bad = int(evidence.anomalous[members].sum())
        found.append(
            Cluster(
                members,
                focus(excess),
                kind,
                most / len(members),
                bad / len(members),
                hypergeometric_tail(bad, len(members), len(evidence.bad), len(evidence.cells)),
            )
        )
    return sorted(found, key=lambda cluster: cluster.focus)


def focus(heat: Floats) -> float:
    """The share of the n cells that hold the heat (h, w) ≥ 0: (Σx)² / (n · Σx²), k/n where k are equally hot.

    Squares keep a faint glow over the whole image from counting as much as the place that is hot.
    """
    return float(heat.sum() ** 2 / max(heat.size * float(np.square(heat).sum()), 1e-12))


def _sentence(cluster: Cluster) -> str:
    return (
        f"{len(cluster.members)} images, {cluster.purity:.0%} of them {cluster.kind}, "
        f"heat on {cluster.focus:.0%} of the image"
    )


def _images(evidence: Evidence, cluster: Cluster) -> list[Illustration]:
    """The mean map of a cluster and its highest-scoring example."""
    best = int(cluster.members[np.argmax(evidence.scores[cluster.members])])
    name = f"{len(cluster.members)} × {cluster.kind} {cluster.purity:.0%}"
    mean = Illustration(f"mean heat: {name}", evidence.map(evidence.cells[cluster.members].mean(0)))
    return [mean, evidence.image(best, f"example of the {len(cluster.members)}: {evidence.paths[best].name}")]
