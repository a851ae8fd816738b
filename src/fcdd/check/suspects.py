"""Defects that hide among the good images: a model that learnt from most good parts finds the few that are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from fcdd.check.diagnosis import Finding, many
from fcdd.check.looks import Look
from fcdd.detector.judge import Judge
from fcdd.detector.looks import spread

FAR = 3.5  # robust standard deviations of the logarithm of good scores above their median
FLOOR = 0.05  # of that deviation: scores that differ by a twentieth are alike
FEWEST = 10  # good images, for a median absolute deviation to be trusted
LISTED = 3  # names in a sentence
ADVICE = "Look at them: are they really good? Take out those that are not, and train again."


def suspects(scores: Sequence[float], usual: Sequence[float]) -> dict[int, float]:
    """Which of `scores` lie far above the `usual` ones of good images, the highest first, in multiples of their median.

    A few of the usual ones may be defects themselves: median and median absolute deviation do not mind.
    """
    if len(usual) < FEWEST or not len(scores):
        return {}
    logs, known = (np.log(np.maximum(np.asarray(values, np.float64), 1e-9)) for values in (scores, usual))
    above = logs - np.median(known)
    far = np.flatnonzero(above > FAR * np.hypot(spread(known), FLOOR))
    return {int(at): float(np.exp(above[at])) for at in far[np.argsort(-above[far], kind="stable")]}


def suspected(judge: Judge, good: Sequence[Path]) -> dict[int, float]:
    """Which of the `good` images `judge` finds unlike good ones, the worst first, in multiples of what is usual.

    Images that the model learnt from score lower than others do, so they are compared with each other, and all others
    with those of the calibration.
    """
    scores = judge.score_samples(good)
    known = np.array([judge.trained_on(path) for path in good], np.bool_)
    learnt, others = np.flatnonzero(known), np.flatnonzero(~known)
    found: dict[int, float] = {}
    for own, usual in ((learnt, scores[learnt].tolist()), (others, judge.calibration.scores)):
        found |= {int(own[at]): times for at, times in suspects(scores[own].tolist(), usual).items()}
    return {at: found[at] for at in sorted(found, key=lambda at: -found[at])}


def named(judge: Judge, looks: Sequence[Look]) -> Iterator[Finding]:
    """A finding that names the suspects among good images."""
    found = suspected(judge, [look.path for look in looks])
    if found:
        message = f"{many(len(found), 'good image')} of {len(looks)} {_words(list(found.values()))}:"
        yield Finding("warning", "suspect", tuple(looks[at].name for at in found), message, ADVICE)


def sentence(names: Sequence[str], scores: Sequence[float]) -> str:
    """What training says of suspects among the good images that it held out; empty where there are none."""
    found = suspects(scores, scores)
    if not found:
        return ""
    listed = ", ".join([names[at] for at in found][:LISTED])
    more = f" and {len(found) - LISTED} more" if len(found) > LISTED else ""
    held = f"{many(len(found), 'held-out good image')} of {len(scores)}"
    return f"{held} {_words(list(found.values()))}: {listed}{more}. {ADVICE}"


def _words(times: Sequence[float]) -> str:
    like = "scores as a defect does" if len(times) == 1 else "score as defects do"
    return f"{like}, up to {max(times):.1f} times what most good images reach"
