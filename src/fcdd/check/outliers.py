"""Good images judged against each other: single ones unlike the rest, and a test set taken under another light."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fcdd.check.diagnosis import TEST, TRAIN, Finding
from fcdd.check.looks import Look, names
from fcdd.detector.looks import TRAITS, Trait, compare, spread

UNLIKE = 7.0  # robust standard deviations
FEWEST_FOR_SPREAD = 20  # images, for a median absolute deviation to be trusted
CROWD = 0.1  # share of a group beyond which "outliers" are a second population
FEWEST_FOR_SHIFT = 10  # images on either side

# Beside the traits of an image: ln distance to the median thumbnail.
_TRAITS = (*TRAITS, Trait("view", "", "something else in view", 0.05))
_FLOORS = np.array([trait.floor for trait in _TRAITS])


def unlike(looks: Sequence[Look]) -> Iterator[Finding]:
    """Images of one good group of which a trait is further than `UNLIKE` from the median, the strangest first."""
    if len(looks) < FEWEST_FOR_SPREAD:
        return
    z = _deviations(looks)
    strangeness = np.abs(z).max(axis=1)
    found = sorted(np.flatnonzero(strangeness > UNLIKE).tolist(), key=lambda at: -strangeness[at])
    if len(found) > CROWD * len(looks):
        message = f"{len(found)} of {len(looks)} {looks[0].group} images are unlike the rest: a group of their own?"
        advice = "Look at them. If two kinds of parts or two lamps are mixed on purpose, all is well."
        yield Finding("warning", "two-populations", names(looks[at] for at in found), message, advice)
        return
    for at in found:
        message = f"Unlike the other {looks[at].group} images: {_words(z[at])}."
        yield Finding("warning", "unlike-the-rest", (looks[at].name,), message, "Look at it: is it really good?")


def _deviations(looks: Sequence[Look]) -> NDArray[np.float64]:
    """(N, 8), a column for each of `_TRAITS`: (x − m) / √(σ² + floor²), m the median and σ the robust deviation."""
    thumbs = np.stack([look.thumb for look in looks]).astype(np.float32)
    distance = np.abs(thumbs - np.median(thumbs, axis=0)).mean(axis=(1, 2))
    values = np.column_stack([np.stack([look.traits for look in looks]), np.log(distance + 0.1)])
    z = np.asarray((values - np.median(values, axis=0)) / np.hypot(spread(values), _FLOORS))
    z[:, -1] = np.maximum(z[:, -1], 0)  # near the median image is no fault
    return z


def _words(z: NDArray[np.float64]) -> str:
    """What is strange about one image, the strangest trait first; `z` is (8,)."""
    strange = [k for k in np.argsort(-np.abs(z)) if abs(z[k]) > UNLIKE]
    return ", ".join(f"{_TRAITS[k].high if z[k] > 0 else _TRAITS[k].low} (z = {z[k]:+.0f})" for k in strange)


def shift(looks: Sequence[Look]) -> Iterator[Finding]:
    """Whether the good test images look like the good training images, by the rule that also holds for batches."""
    train, test = ([look.traits for look in looks if look.group == group] for group in (TRAIN, TEST))
    if min(len(train), len(test)) < FEWEST_FOR_SHIFT:
        return
    changes = compare(np.array(train), np.array(test)).changes
    if changes:
        listed = ", ".join(change.words for change in changes)
        message = f"Light, focus or distance differ: good test images are {listed}, against good training images."
        advice = "Take both in the same way. Training varies the light by a tenth; more can look like a defect."
        yield Finding("note", "lighting-shift", (), message, advice)
