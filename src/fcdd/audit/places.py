"""Where the same thing lies at the same place of several anomalous images.

Every hot cell of an anomalous image is a seed: something the score rests on. Another image is *alike* where a cell of
it looks more like the seed than any cell of any good image does (cosine of whitened features). Of the alike ones we
count those that match at the seed's place and those that match better elsewhere. A seed is a cue where

    more anomalous images match at the place than chance would pick from good and anomalous ones alike (exact, times
    the number of seeds), and most alike images match at the place rather than elsewhere (binomial against one half).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fcdd.progress import bar
from fcdd.regions import components

from .chance import LEVEL, binomial_tail, hypergeometric_tail
from .evidence import Evidence

NEAR, FAR = 1, 3  # cells: a match within NEAR is at the place, one beyond FAR is elsewhere
SEEDS = 2500
WHOLE = 0.5  # share of the image beyond which its place is no place: it is what the images show
PLACED = 0.05  # chance at which alike images would match at the place rather than elsewhere


@dataclass(frozen=True)
class Recurrence:
    """Cells (h, w) that look alike in the images `carriers`, and how likely chance would have it so."""

    cells: NDArray[np.bool_]
    carriers: NDArray[np.intp]
    chance: float
    alike: int  # images that show the look anywhere, of which most show it here


def fewest_carriers(evidence: Evidence) -> int | None:
    """How many anomalous images have to carry a cue before it can be told from chance; None where all are too few."""
    if not len(evidence.bad):
        return None
    chances = _chances(len(evidence.bad), len(evidence.good), len(_seeds(evidence)[0]))
    enough = [n for n, one in enumerate(chances) if one < LEVEL and binomial_tail(n, n) < PLACED]
    return 1 + enough[0] if enough else None


def recurrences(evidence: Evidence, quiet: bool = True) -> list[Recurrence]:
    """Places where anomalous images carry the same thing, the most unlikely first."""
    bad, good = evidence.bad, evidence.good
    if len(bad) < 3 or len(good) < 3:
        return []
    owner, place = _seeds(evidence)
    here, elsewhere = _matches(evidence, owner, place, quiet)
    limit = np.maximum(here, elsewhere)[:, good].max(1, keepdims=True)
    here, elsewhere = here[:, bad], elsewhere[:, bad]
    same = (here > limit) & (here >= elsewhere)
    other = (elsewhere > limit) & ~same
    chances = _chances(len(bad), len(good), len(place))[same.sum(1)]
    placed = np.array([binomial_tail(s, s + o) for s, o in zip(same.sum(1), other.sum(1), strict=True)])
    kept = np.flatnonzero((chances < LEVEL) & (placed < PLACED))
    return _grouped(evidence, owner[kept], place[kept], same[kept], other[kept], chances[kept])


def _chances(bad: int, good: int, seeds: int) -> NDArray[np.float64]:
    """(bad,): how likely it is that the best of `seeds` seeds is matched by 0, 1, … other images, all anomalous, were
    the matching images drawn blindly from `bad` − 1 anomalous and `good` good ones (Bonferroni's bound)."""
    single = [hypergeometric_tail(n, n, bad - 1, bad - 1 + good) for n in range(bad)]
    return np.asarray(np.minimum(np.array(single) * seeds, 1))


def _seeds(evidence: Evidence) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Images and places of the hot cells of anomalous images, the hottest of each where there are too many."""
    each = max(1, min(evidence.hot.shape[1], SEEDS // len(evidence.bad)))
    return np.repeat(evidence.bad, each), evidence.hot[evidence.bad, :each].ravel()


def _matches(
    evidence: Evidence, owner: NDArray[np.intp], place: NDArray[np.intp], quiet: bool
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(S, N) each: how alike the best cell of each image is to each seed, near its place and far from it."""
    width = evidence.cells.shape[2]
    everywhere = np.arange(evidence.looks.shape[1])
    away = np.maximum(
        abs(place[:, None] // width - everywhere // width), abs(place[:, None] % width - everywhere % width)
    )
    far = np.where((away > FAR) & evidence.detector.inside.ravel(), np.float32(0), np.float32(-2))
    rows, columns = np.nonzero(away <= NEAR)
    seeds = evidence.looks[owner, place].astype(np.float32)
    here = np.full((len(place), len(evidence.looks)), -2, np.float32)
    elsewhere = here.copy()
    with bar("comparing hot cells", len(evidence.looks), quiet=quiet) as shown:
        for n, looks in enumerate(evidence.looks):
            alike = seeds @ looks.astype(np.float32).T
            np.maximum.at(here[:, n], rows, alike[rows, columns])
            elsewhere[:, n] = (alike + far).max(1)
            shown.advance(1)
    own = np.arange(len(owner)), owner
    here[own] = elsewhere[own] = -2
    return here, elsewhere


def _grouped(
    evidence: Evidence,
    owner: NDArray[np.intp],
    place: NDArray[np.intp],
    same: NDArray[np.bool_],
    other: NDArray[np.bool_],
    chances: NDArray[np.float64],
) -> list[Recurrence]:
    """Seeds that touch are one cue; its cells are those that its carriers share."""
    height, width = evidence.cells.shape[1:]
    marked = np.zeros((height, width), np.bool_)
    for p in place:
        marked[max(p // width - 1, 0) : p // width + 2, max(p % width - 1, 0) : p % width + 2] = True
    labels, count = components(marked)
    found = []
    for label in range(1, count + 1):
        members = np.flatnonzero(labels.ravel()[place] == label)
        votes = same[members].mean(0)
        carriers = np.union1d(evidence.bad[votes > max(0.2 * float(votes.max()), 1e-9)], owner[members])
        best = members[np.argmin(chances[members])]
        cells = _shared(evidence, carriers, labels == label)
        alike = 1 + int((same | other)[best].sum())
        found.append(Recurrence(cells, carriers, float(chances[best]), alike))
    merged = _merged(sorted(found, key=lambda one: (one.chance, -len(one.carriers))))
    return [one for one in merged if _extent(one.cells) <= WHOLE]


def _extent(cells: NDArray[np.bool_]) -> float:
    """The share of the image that the box around the cells covers."""
    return float(np.prod([np.ptp(np.flatnonzero(cells.any(axis))) + 1 for axis in (0, 1)]) / cells.size)


def _merged(found: list[Recurrence]) -> list[Recurrence]:
    """Neighbouring places with largely the same carriers are one cue: letters of one text, say."""
    kept: list[Recurrence] = []
    for one in found:
        for n, other in enumerate(kept):
            common = len(np.intersect1d(one.carriers, other.carriers))
            together = len(np.union1d(one.carriers, other.carriers))
            if 2 * common >= together and _adjacent(one.cells, other.cells):
                carriers = np.union1d(one.carriers, other.carriers)
                kept[n] = Recurrence(one.cells | other.cells, carriers, other.chance, other.alike)
                break
        else:
            kept.append(one)
    return kept


def _adjacent(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> bool:
    """Whether the boxes around two sets of cells are at most FAR cells apart."""
    spans = [[np.flatnonzero(cells.any(axis))[[0, -1]] for axis in (1, 0)] for cells in (one, other)]
    return all(a[0] <= b[1] + FAR + 1 and b[0] <= a[1] + FAR + 1 for a, b in zip(*spans, strict=True))


def _shared(evidence: Evidence, carriers: NDArray[np.intp], seen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The seeds' cells grown by the cells around them that look alike in the carriers, and only there.

    Mean cosine between the looks of two carriers at one cell, (‖Σ x‖² − n)/(n² − n), against that of good images.
    """

    def mutual(images: NDArray[np.intp]) -> NDArray[np.float64]:
        total = evidence.looks[images].astype(np.float32).sum(0)
        n = len(images)
        return np.asarray(((total**2).sum(1) - n) / (n * (n - 1)), np.float64)

    gained = (mutual(carriers) - mutual(evidence.good)).reshape(seen.shape)
    labels, _ = components((gained > 0.25 * gained[seen].max()) | seen)
    touching = np.unique(labels[seen])
    return np.asarray(np.isin(labels, touching[touching > 0]), np.bool_)
