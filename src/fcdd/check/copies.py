"""Images that are there twice: the same pixels, or almost the same image of the same part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fcdd.check.diagnosis import GROUPS, Finding, grouped
from fcdd.check.looks import Look, names

NEAR, NEIGHBOURS = (0.95, 0.99), 21  # correlation of what is particular to two images
FEWEST = 10  # images, for what they share to be known
ROWS = 512  # images correlated with all others at once


def duplicates(looks: Sequence[Look]) -> Iterator[Finding]:
    """Sets of images with the same pixels: an error where they lie in several groups, else a warning."""
    for alike in grouped(looks, lambda look: look.digest).values():
        groups = _groups(alike)
        if len(groups) > 1:
            message = f"The same image is in {' and '.join(groups)}."
            advice = "Keep it in one group: what was trained on cannot be tested on, and a part has one label."
            yield Finding("error", "duplicate-across", names(alike), message, advice)
        elif len(alike) > 1:
            message = f"The same image, {len(alike)} times in {groups[0]}."
            advice = "Keep one of each: copies add nothing but weight."
            yield Finding("warning", "duplicate", names(alike), message, advice)


def near_duplicates(looks: Sequence[Look]) -> Iterator[Finding]:
    """Sets of images that are connected by the correlation of what is particular to each; exact copies count once."""
    looks = list({look.digest: look for look in looks}.values())
    if len(looks) < FEWEST:
        return
    leaders = _leaders(_particular(looks))
    for members in grouped(range(len(looks)), lambda at: int(leaders[at])).values():
        if len(members) > 1:
            alike = [looks[at] for at in members]
            message = f"Almost the same image, {len(alike)} times in {' and '.join(_groups(alike))}."
            advice = "Look at them. If they show one and the same part, keep one, or keep all in one group."
            yield Finding("warning", "near-duplicate", names(alike), message, advice)


def _groups(looks: Iterable[Look]) -> list[str]:
    present = {look.group for look in looks}
    return [group for group in GROUPS if group in present]


def _particular(looks: Sequence[Look]) -> NDArray[np.float32]:
    """Unit vectors (N, 64²): the fine detail of each thumbnail less the median detail of all. Parts in the same fixture
    share the latter, while a second shot or a saved-again copy shares the former."""
    detail = np.stack([_detail(look.thumb) for look in looks])
    detail -= np.median(detail, axis=0)
    detail /= np.maximum(np.linalg.norm(detail, axis=1, keepdims=True), 1e-6)
    return detail


def _detail(thumb: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Luma (S, S) less its 3×3 mean, flattened (S²,)."""
    side = thumb.shape[0]
    padded = np.pad(thumb.astype(np.float32), 1, mode="edge")
    mean = sum(padded[row : row + side, column : column + side] for row in range(3) for column in range(3)) / 9
    return np.asarray(padded[1:-1, 1:-1] - mean, dtype=np.float32).ravel()


def _leaders(vectors: NDArray[np.float32]) -> NDArray[np.int64]:
    """Unit vectors (N, D) → (N,) an index that all members of a connected set share.

    Two are connected where their correlation exceeds a limit two thirds of the way from the usual correlation with a
    vector's nearest neighbours to 1, within `NEAR`: where several products are mixed in one folder, the parts of each
    are alike, yet no copies.
    """
    leaders, neighbours = np.arange(len(vectors)), min(NEIGHBOURS, len(vectors))
    for start in range(0, len(vectors), ROWS):
        correlation = vectors[start : start + ROWS] @ vectors.T
        nearest = np.partition(correlation, -neighbours, axis=1)[:, -neighbours:]
        close = correlation > np.clip((2 + np.median(nearest, axis=1, keepdims=True)) / 3, *NEAR)
        for row in np.flatnonzero(close.sum(axis=1) > 1):
            linked = leaders[close[row]]
            leaders[np.isin(leaders, linked)] = linked.min()
    return leaders
