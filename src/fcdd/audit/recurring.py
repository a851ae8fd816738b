"""Does the same thing at the same place make images anomalous? What is printed over an image repeats so; a real
defect looks like others of its type, but lies elsewhere.

`places` finds where something recurs. Here the place is tested as a cause: put into good images, and taken out of those
that carry it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fcdd.anomalies.cues import Cue, blend

from .chance import LEVEL, ODDS, detectable, mean_interval
from .evidence import Evidence, Pixels, cells_of, scores_of
from .findings import Finding, Illustration, Question, Severity
from .places import Recurrence, fewest_carriers, recurrences

PATCHES = 16
PAIRS = 24  # good images a cue is tried on
MATTERS = 0.1  # share of the gap between good and anomalous scores from which a cue is a serious one


def answer(evidence: Evidence, quiet: bool) -> list[Finding]:
    """One finding for each recurring cue, or one that there is none or that there are too few images to say."""
    found = [_tried(evidence, recurrence, quiet) for recurrence in recurrences(evidence, quiet)]
    if found:
        return found
    needed = fewest_carriers(evidence)
    if needed is None:
        return [_too_few(evidence)]
    hottest = evidence.bad[np.argsort(-evidence.scores[evidence.bad])[:4]]
    return [
        Finding(
            Question.RECURRING,
            Severity.NONE,
            "No recurring cue",
            f"Nothing that the scores of the {len(evidence.bad)} anomalous images rest on repeats at one place of "
            "several of them.",
            "Nothing to do.",
            [evidence.image(int(i)) for i in hottest],
            figures={"fewest_carriers": needed},
            power=_power(evidence, needed),
        )
    ]


def _power(evidence: Evidence, needed: int) -> str:
    return (
        f"With {len(evidence.bad)} anomalous and {len(evidence.good)} good images, a thing has to be on at least "
        f"{needed} of the anomalous ones to be told from chance (false alarms in {LEVEL:.0%} of audits)."
    )


def _too_few(evidence: Evidence) -> Finding:
    return Finding(
        Question.RECURRING,
        Severity.UNKNOWN,
        "Too few to say whether a cue recurs",
        f"There are {len(evidence.bad)} anomalous and {len(evidence.good)} good images.",
        "Give more images of both kinds; from about ten anomalous ones on, a cue that all of them carry is found.",
        power="Even a thing on every anomalous image could not be told from chance "
        f"(false alarms in {LEVEL:.0%} of audits).",
    )


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
    # The same place of images without the cue shows what pasting alone does.
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
    smallest = detectable(shift, LEVEL) / evidence.gap
    serious = low > 0 and (share >= MATTERS or rejected >= MATTERS * len(good) or freed >= MATTERS * len(carriers))
    count = len(recurrence.carriers)
    return Finding(
        Question.RECURRING,
        Severity.HIGH if serious else Severity.MEDIUM,
        f"The same thing at the same place of {count} anomalous images",
        f"{count} of {len(evidence.bad)} anomalous images and no good one show the same thing at the marked place. "
        f"Put into {len(good)} good images it {'raises' if shift.mean() > 0 else 'lowers'} their score by "
        f"{abs(shift.mean()):.2g} ({share:.0%} of what separates good from anomalous images) and gets {rejected} "
        f"more of them rejected; taken out of {len(carriers)} images that carry it, it changes their score by "
        f"{-drop.mean():+.2g} and {max(freed, 0)} of them are no longer rejected.",
        "Ask whether this belongs to the defect. If not (a watermark, a time stamp, a fixture), train again with "
        "--neutralise and this audit's JSON file, or leave the place out with --ignore; then compare. Where the "
        "labelled images show other things than the part, not defects on it, add --whole.",
        _images(evidence, recurrence, cue, pasted[0], cells[0]),
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
        power=f"{_power(evidence, fewest_carriers(evidence) or count)} Put into {len(good)} good images, a cue that "
        f"moves their score by {smallest:.1%} of that gap would be noticed {ODDS}.",
    )


def _images(
    evidence: Evidence, recurrence: Recurrence, cue: Cue, pasted: Pixels, cells: NDArray[np.float32]
) -> list[Illustration]:
    """Carriers with the place framed, what they share there, and a good image that got it."""
    box = cue.box(evidence.detector.grid.shape)
    shown = [
        Illustration(f"carries it: {evidence.paths[i].name}", evidence.shown(framed(evidence.inputs[i], box)))
        for i in recurrence.carriers[:3]
    ]
    mean = np.mean([patch.astype(np.float32) for patch in cue.patches], 0).round().astype(np.uint8)
    return [
        *shown,
        Illustration("the place, averaged over those that carry it", evidence.shown(mean)),
        Illustration("a good image with it, under its heat", evidence.shown(framed(pasted, box), cells)),
    ]


def framed(image: Pixels, box: tuple[slice, slice]) -> Pixels:
    """The image (H, W, 3) with a bright line of two pixels around `box`, its rows and columns."""
    result = image.copy()
    rows, columns = (slice(max(part.start - 2, 0), part.stop + 2) for part in box)
    frame = np.zeros(image.shape[:2], np.bool_)
    frame[rows, columns] = True
    frame[slice(rows.start + 2, rows.stop - 2), slice(columns.start + 2, columns.stop - 2)] = False
    result[frame] = (0, 230, 255)
    return result
