"""The detector's recipe as plain values: the trained and the exported model carry the same. Needs no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fcdd.nn.architecture import AnyArchitecture, architecture_from


@dataclass(frozen=True)
class Settings:
    """One recipe for all parts, nothing to tune. None leaves a value to the method or to its network."""

    architecture: AnyArchitecture | None = None  # of the network; None: the method's usual one
    method: str = "sum"  # name in fcdd.training.learners.LEARNERS
    quality: str = "standard"  # name in the method's qualities
    smallest: int = 256  # the input has about as many pixels as the good images, within squares of these sides:
    largest: int | None = None  # the method's; more costs time and shows nothing new, fewer hides small defects
    vectors: int = 120_000  # size of the bank: 120 MB, whatever the number of images
    holdout: float = 0.25  # share of the good images kept from training for calibration
    top: float | None = None  # share of the strongest cells whose mean is the score; 1.0 is the paper's mean
    sigma: float | None = None  # of the Gaussian that shows a cell, in pixels of the input
    max_false_rejects: float | None = None  # None: 1 %, or the least that the calibration images support
    review: float | None = None  # None: 5 %, or twice as many as are rejected
    epochs: int = 0  # of a network that is trained by the loop; 0 for its own number

    def held(self, count: int) -> int:
        """How many of `count` good images are kept from training for calibration: `holdout` of them, rounded up."""
        return math.ceil(self.holdout * count)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Settings:
        """What `dataclasses.asdict` gave, also of files of schema 1."""
        given = values.get("architecture")
        known = {"method": "nominal", **values}  # the only one that files of schema 1 know, and do not name
        return Settings(**{**known, "architecture": None if given is None else architecture_from(given)})
