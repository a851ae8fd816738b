"""Ways to learn cells from good images, by name: what `fcdd train --method` offers. A new one is a new file here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fcdd.nn.architecture import AnyArchitecture
from fcdd.nn.network import CellNetwork
from fcdd.registry import Registry
from fcdd.training.lesson import Lesson


@dataclass(frozen=True)
class Learner:
    """One way to learn.

    `architecture(network)` is that of the network the user named; `labelled(architecture)` is what becomes of it where
    there are labelled anomalies.
    `start(network, weights)` puts pretrained weights into a new network, from a file where one is given.
    `learn(network, lesson)` trains it in place.
    """

    about: str  # a sentence for the help
    top: float  # share of the strongest cells whose mean is the score; 1.0 is the paper's mean
    architecture: Callable[[str], AnyArchitecture]
    labelled: Callable[[AnyArchitecture], AnyArchitecture]
    start: Callable[[CellNetwork, Path | None], None]
    learn: Callable[[CellNetwork, Lesson], None]
    largest: int = 384  # side of the largest square input, in pixels
    outliers: bool = True  # whether images of other things can be learnt from


LEARNERS: Registry[Learner] = Registry("method", "fcdd.training.learners")
