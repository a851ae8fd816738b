"""The detector's recipe as plain values. Needs nothing: the trained and the exported model carry the same."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fcdd.nn.architecture import Architecture


@dataclass(frozen=True)
class Settings:
    """The default recipe: one for all parts, nothing to tune."""

    architecture: Architecture = field(default_factory=Architecture)
    smallest: int = 256  # the input has about as many pixels as the good images, within squares of these sides:
    largest: int = 384  # more costs time and shows nothing new, fewer hides small defects
    vectors: int = 120_000  # size of the bank: 120 MB, whatever the number of images
    holdout: float = 0.25  # share of the good images kept from training for calibration
    top: float = 0.01  # share of the strongest cells whose mean is the score
    sigma: float = 8.0  # of the Gaussian that shows a cell, in pixels of the input
    max_false_rejects: float | None = None  # None: 1 %, or the least that the calibration images support
    review: float | None = None  # None: 5 %, or twice as many as are rejected

    def held(self, count: int) -> int:
        """How many of `count` good images are kept from training for calibration: `holdout` of them, rounded up."""
        return math.ceil(self.holdout * count)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Settings:
        """What `dataclasses.asdict` gave."""
        return Settings(**{**values, "architecture": Architecture(**values["architecture"])})
