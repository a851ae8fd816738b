"""Good images judged against each other: single ones unlike the rest, and a test set taken under another light."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fcdd.check.diagnosis import TEST, TRAIN, Finding
from fcdd.check.looks import Look, names

UNLIKE = 7.0  # robust standard deviations
FEWEST_FOR_SPREAD = 20  # images, for a median absolute deviation to be trusted
CROWD = 0.1  # share of a group beyond which "outliers" are a second population
SHIFT, SHIFT_LEVELS = 2.0, 3.0  # lighting: robust standard deviations, and gray levels
FEWEST_FOR_SHIFT = 10  # images on either side

# Words for an unusually low and high value, and what is added to the variance so that folders of almost equal images
# raise no alarm: brightness, contrast, ln sharpness, R − G, B − G, ln distance to the median thumbnail.
_TRAITS = (
    ("darker", "brighter"),
    ("less contrast", "more contrast"),
    ("blurred", "sharper"),
    ("greener", "redder"),
    ("yellower", "bluer"),
    ("", "something else in view"),
)
_FLOORS = np.array([1.0, 1.0, 0.05, 1.0, 1.0, 0.05], dtype=np.float32)


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


def _deviations(looks: Sequence[Look]) -> NDArray[np.float32]:
    """(N, 6), a column for each of `_TRAITS`: (x − m) / √(σ² + floor²), m the median and σ the robust deviation."""
    thumbs = np.stack([look.thumb for look in looks]).astype(np.float32)
    distance = np.abs(thumbs - np.median(thumbs, axis=0)).mean(axis=(1, 2))
    values = np.column_stack([np.stack([look.traits for look in looks]), np.log(distance + 0.1)])
    z = np.asarray((values - np.median(values, axis=0)) / np.hypot(_spread(values), _FLOORS))
    z[:, -1] = np.maximum(z[:, -1], 0)  # near the median image is no fault
    return z


def _spread(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """The robust standard deviation 1.4826 · median |x − median x| along the first axis."""
    return np.asarray(1.4826 * np.median(np.abs(values - np.median(values, axis=0)), axis=0), dtype=np.float32)


def _words(z: NDArray[np.float32]) -> str:
    """What is strange about one image, the strangest trait first; `z` is (6,)."""
    strange = [k for k in np.argsort(-np.abs(z)) if abs(z[k]) > UNLIKE]
    return ", ".join(f"{_TRAITS[k][int(z[k] > 0)]} (z = {z[k]:+.0f})" for k in strange)


def shift(looks: Sequence[Look]) -> Iterator[Finding]:
    """Median brightness of the good test images against the good training images', in the latter's robust σ."""
    train, test = (np.array([look.traits[0] for look in looks if look.group == group]) for group in (TRAIN, TEST))
    if min(len(train), len(test)) < FEWEST_FOR_SHIFT:
        return
    usual, now, spread = float(np.median(train)), float(np.median(test)), float(_spread(train))
    if abs(now - usual) > max(SHIFT * spread, SHIFT_LEVELS):
        message = (
            f"The light differs: good test images are {abs(now - usual):.0f} gray levels "
            f"{'brighter' if now > usual else 'darker'} than good training images "
            f"({now:.0f} against {usual:.0f}, spread {spread:.1f})."
        )
        advice = "Take both under the same light. Training varies the light by a tenth; more can look like a defect."
        yield Finding("note", "lighting-shift", (), message, advice)
