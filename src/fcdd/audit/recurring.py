"""Does the same thing at the same place make pictures anomalous? What is printed over a picture repeats so; a real
defect looks like others of its type, but lies elsewhere.

Every hot cell of an anomalous picture is a seed: something the score rests on. Another picture is *alike* where a cell
of it looks more like the seed than any cell of any good picture does (cosine of whitened features). Of the alike ones
we count those that match at the seed's place and those that match better elsewhere. A seed is a cue where

    more anomalous pictures match at the place than chance would pick from good and anomalous ones alike (exact, times
    the number of seeds), and most alike pictures match at the place rather than elsewhere (binomial against one half).

Then the place is tested as a cause: put into good pictures, and taken out of those that carry it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fcdd.anomalies.cues import Cue, blend
from fcdd.progress import bar
from fcdd.regions import components

from .chance import LEVEL, binomial_tail, hypergeometric_tail, mean_interval
from .evidence import Evidence, Pixels, cells_of, scores_of
from .findings import Finding, Picture, Question, Severity

NEAR, FAR = 1, 3  # cells: a match within NEAR is at the place, one beyond FAR is elsewhere
SEEDS = 2500
PATCHES = 16
PAIRS = 24  # good pictures a cue is tried on
WHOLE = 0.5  # share of the picture beyond which its place is no place: it is what the pictures show
MATTERS = 0.1  # share of the gap between good and anomalous scores from which a cue is a serious one


@dataclass(frozen=True)
class Recurrence:
    """Cells (h, w) that look alike in the pictures `carriers`, and how likely chance would have it so."""

    cells: NDArray[np.bool_]
    carriers: NDArray[np.intp]
    chance: float
    alike: int  # pictures that show the look anywhere, of which most show it here


def answer(evidence: Evidence, quiet: bool) -> list[Finding]:
    """One finding for each recurring cue, or one that there is none."""
    if not len(evidence.bad):
        return []
    found = [_tried(evidence, recurrence, quiet) for recurrence in recurrences(evidence, quiet)]
    if found:
        return found
    hottest = evidence.bad[np.argsort(-evidence.scores[evidence.bad])[:4]]
    return [
        Finding(
            Question.RECURRING,
            Severity.NONE,
            "No recurring cue",
            f"Nothing that the scores of the {len(evidence.bad)} anomalous pictures rest on repeats at one place of "
            "several of them.",
            "Nothing to do.",
            [evidence.picture(int(i)) for i in hottest],
        )
    ]


def recurrences(evidence: Evidence, quiet: bool = True) -> list[Recurrence]:
    """Places where anomalous pictures carry the same thing, the most unlikely first."""
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
    kept = np.flatnonzero((chances < LEVEL) & (placed < 0.05))
    return _grouped(evidence, owner[kept], place[kept], same[kept], other[kept], chances[kept])


def _chances(bad: int, good: int, seeds: int) -> NDArray[np.float64]:
    """(bad,): how likely it is that the best of `seeds` seeds is matched by 0, 1, … other images, all anomalous, were
    the matching images drawn blindly from `bad` − 1 anomalous and `good` good ones (Bonferroni's bound)."""
    single = [hypergeometric_tail(n, n, bad - 1, bad - 1 + good) for n in range(bad)]
    return np.minimum(np.array(single) * seeds, 1)


def _seeds(evidence: Evidence) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pictures and places of the hot cells of anomalous pictures, the hottest of each where there are too many."""
    each = max(1, min(evidence.hot.shape[1], SEEDS // len(evidence.bad)))
    return np.repeat(evidence.bad, each), evidence.hot[evidence.bad, :each].ravel()


def _matches(
    evidence: Evidence, owner: NDArray[np.intp], place: NDArray[np.intp], quiet: bool
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(S, N) each: how alike the best cell of each picture is to each seed, near its place and far from it."""
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
    """The share of the picture that the box around the cells covers."""
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

    Mean cosine between the looks of two carriers at one cell, (‖Σ x‖² − n)/(n² − n), against that of good pictures.
    """

    def mutual(pictures: NDArray[np.intp]) -> NDArray[np.float64]:
        total = evidence.looks[pictures].astype(np.float32).sum(0)
        n = len(pictures)
        return np.asarray(((total**2).sum(1) - n) / (n * (n - 1)), np.float64)

    gained = (mutual(carriers) - mutual(evidence.good)).reshape(seen.shape)
    labels, _ = components((gained > 0.25 * gained[seen].max()) | seen)
    touching = np.unique(labels[seen])
    return np.asarray(np.isin(labels, touching[touching > 0]), np.bool_)


def cue_of(evidence: Evidence, recurrence: Recurrence) -> Cue:
    """The place with a margin of one cell, and what the carriers show there, the most typical first."""
    height, width = recurrence.cells.shape
    rows, columns = (np.flatnonzero(recurrence.cells.any(axis)) for axis in (1, 0))
    place = (
        max(columns[0] - 1, 0) / width,
        max(rows[0] - 1, 0) / height,
        min(columns[-1] + 2, width) / width,
        min(rows[-1] + 2, height) / height,
    )
    looks = evidence.looks[recurrence.carriers][:, recurrence.cells.ravel()].astype(np.float32)
    typical = (looks * looks.mean(0)).sum((1, 2))
    chosen = recurrence.carriers[np.argsort(-typical)[:PATCHES]]
    box = Cue(place, ()).box(evidence.detector.grid.shape)
    return Cue(place, tuple(np.ascontiguousarray(evidence.inputs[i][box]) for i in chosen))


def _tried(evidence: Evidence, recurrence: Recurrence, quiet: bool) -> Finding:
    """The recurring place as a cause of the score."""
    cue, detector = cue_of(evidence, recurrence), evidence.detector
    box = cue.box(detector.grid.shape)
    good = evidence.some_good(PAIRS)
    others = np.setdiff1d(evidence.bad, recurrence.carriers)
    donors = others if len(others) else evidence.good[::-1]
    pasted = [cue.paste(evidence.inputs[i], n) for n, i in enumerate(good)]
    # The same place of pictures without the cue shows what pasting alone does.
    control = [
        blend(evidence.inputs[i], evidence.inputs[donors[n % len(donors)]][box], box) for n, i in enumerate(good)
    ]
    carriers = recurrence.carriers[: 2 * PAIRS]
    erased = [blend(evidence.inputs[i], evidence.inputs[good[n % len(good)]][box], box) for n, i in enumerate(carriers)]
    cells = cells_of(detector, [*pasted, *control, *erased], "trying a recurring cue", quiet)
    with_cue, without, after = np.split(scores_of(detector, cells), [len(good), 2 * len(good)])
    shift = with_cue - without
    low, high = mean_interval(shift, LEVEL)
    drop = evidence.scores[carriers] - after
    freed = evidence.rejected(evidence.scores[carriers]) - evidence.rejected(after)
    rejected = evidence.rejected(with_cue) - evidence.rejected(without)
    share = float(shift.mean()) / evidence.gap
    serious = low > 0 and (share >= MATTERS or rejected >= MATTERS * len(good) or freed >= MATTERS * len(carriers))
    count = len(recurrence.carriers)
    return Finding(
        Question.RECURRING,
        Severity.HIGH if serious else Severity.MEDIUM,
        f"The same thing at the same place of {count} anomalous pictures",
        f"{count} of {len(evidence.bad)} anomalous pictures and no good one show the same thing at the marked place. "
        f"Put into {len(good)} good pictures it {'raises' if shift.mean() > 0 else 'lowers'} their score by "
        f"{abs(shift.mean()):.2g} ({share:.0%} of what separates good from anomalous pictures) and gets {rejected} "
        f"more of them rejected; taken out of {len(carriers)} pictures that carry it, it changes their score by "
        f"{-drop.mean():+.2g} and {max(freed, 0)} of them are no longer rejected.",
        "Ask whether this belongs to the defect. If not (a watermark, a time stamp, a fixture), train again with "
        "--neutralise and this audit's JSON file, or leave the place out with --ignore; then compare. Where the "
        "labelled pictures show other things than the part, not defects on it, add --whole.",
        _pictures(evidence, recurrence, cue, pasted[0], cells[0]),
        effect=share,
        figures={
            "carriers": count,
            "alike_anywhere": recurrence.alike,
            "chance": recurrence.chance,
            "shift": float(shift.mean()),
            "shift_low": low,
            "shift_high": high,
            "share_of_gap": share,
            "good_rejected_with_it": rejected,
            "drop_without_it": float(drop.mean()),
            "freed_without_it": freed,
        },
        files=[str(evidence.paths[i]) for i in recurrence.carriers],
        cue=cue,
    )


def _pictures(
    evidence: Evidence, recurrence: Recurrence, cue: Cue, pasted: Pixels, cells: NDArray[np.float32]
) -> list[Picture]:
    """Carriers with the place framed, what they share there, and a good picture that got it."""
    box = cue.box(evidence.detector.grid.shape)
    shown = [
        Picture(f"carries it: {evidence.paths[i].name}", evidence.shown(framed(evidence.inputs[i], box)))
        for i in recurrence.carriers[:3]
    ]
    mean = np.mean([patch.astype(np.float32) for patch in cue.patches], 0).round().astype(np.uint8)
    return [
        *shown,
        Picture("the place, averaged over those that carry it", evidence.shown(mean)),
        Picture("a good picture with it, under its heat", evidence.shown(framed(pasted, box), cells)),
    ]


def framed(picture: Pixels, box: tuple[slice, slice]) -> Pixels:
    """The picture with a bright line around `box`."""
    result = picture.copy()
    rows, columns = (slice(max(part.start - 2, 0), part.stop + 2) for part in box)
    frame = np.zeros(picture.shape[:2], np.bool_)
    frame[rows, columns] = True
    frame[slice(rows.start + 2, rows.stop - 2), slice(columns.start + 2, columns.stop - 2)] = False
    result[frame] = (0, 230, 255)
    return result
