"""What a detector learns from, whatever the method: good images, and the anomalies that the user has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fcdd.anomalies.cues import Cue
from fcdd.data import Source
from fcdd.reading import ImageLike


@dataclass(frozen=True)
class Lesson:
    """Everything that `Learner.learn` may use. Images of a `Source` are uint8 (3, H, W) at the input's shape."""

    images: Sequence[ImageLike]  # good ones to train on, without those that are held out for calibration
    good: Source  # the same at the input's shape
    shape: tuple[int, int]  # height and width of the input
    inside: Tensor  # (h·w,) bool: cells of the region of interest
    seed: int
    vectors: int  # size of the bank of single features
    defects: Sequence[ImageLike] = ()  # labelled anomalies
    masks: Sequence[NDArray[np.bool_] | None] = ()  # one for each of them, or None
    outliers: Sequence[ImageLike] = ()  # images of other things, as auxiliary anomalies
    whole: bool = False  # the labelled images show other things than the part, not defects on it
    cues: Sequence[Cue] = ()  # what must not count
    epochs: int = 0  # of a network that is trained by the loop; 0 for its own number
    work: Path | None = None  # where a killed learning goes on
    identity: dict[str, Any] = field(default_factory=dict)  # what the contents of `work` depend on
    quiet: bool = True
    # Filled by the learner: the score of each labelled anomaly by a head that has not seen it; empty where unknown.
    held_out: list[float] = field(default_factory=list)


def some(source: Source, count: int = 64) -> Tensor:
    """At most `count` of the images, evenly taken: (n, 3, H, W) float in 0…255."""
    return source[torch.arange(0, len(source), max(1, len(source) // count))[:count]].float()
