"""A plain background around the parts: said before training, and noticed where the heat of a model lies on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fcdd.check.diagnosis import Finding
from fcdd.check.foreground import propose
from fcdd.detector.judge import Judge
from fcdd.detector.result import Result
from fcdd.errors import DataError
from fcdd.folders import FEWEST

FEWEST_HOT, SHARE = 3, 0.2  # images whose hottest place is on the background, from which on that is worth saying
ADVICE = "fcdd train --roi auto looks at the parts alone"


def plain_background(good: Sequence[Path]) -> Iterator[Finding]:
    """That the good images show parts on a plain background, where that is sure."""
    if len(good) < FEWEST:
        return
    try:
        found = propose(good)
    except DataError:
        return
    message = f"The parts lie on a plain background, which takes {1 - found.share:.0%} of the image."
    yield Finding("note", "plain-background", (), message, f"Nothing there can be a defect: {ADVICE}.")


class Watch:
    """Counts results whose hottest place lies on a plain background, for a model without region of interest."""

    def __init__(self, judge: Judge, good: Sequence[Path]) -> None:
        self.images = self.hot = 0
        self._parts = None
        if judge.inside.all():
            try:
                self._parts = judge.grid.inside(propose(good).mask)
            except DataError:
                return

    def __call__(self, _: NDArray[np.uint8], result: Result) -> None:
        if self._parts is not None:
            self.images += 1
            self.hot += not self._parts.ravel()[int(np.argmax(result.cells))]

    @property
    def sentence(self) -> str:
        """What was seen and what helps; empty where there is nothing to say."""
        if self._parts is None or self.hot < max(FEWEST_HOT, SHARE * self.images):
            return ""
        return (
            f"In {self.hot} of {self.images} images the hottest place lies on the plain background beside the part, "
            f"where nothing can be a defect: {ADVICE}."
        )
