"""Ways to learn cells from good images, by name: what `fcdd train --method` offers. A new one is a new file here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fcdd.errors import DataError
from fcdd.nn.architecture import AnyArchitecture
from fcdd.nn.network import CellNetwork
from fcdd.registry import Registry
from fcdd.training.lesson import Lesson

STANDARD = "standard"


@dataclass(frozen=True)
class Quality:
    """How much a model may cost: what a method gives up for speed, or adds for the last point of accuracy."""

    largest: int  # side of the largest square input, in pixels
    change: Callable[[AnyArchitecture], AnyArchitecture] = lambda usual: usual  # of the method's architecture


@dataclass(frozen=True)
class Learner:
    """One way to learn.

    `architecture(network)` is that of the network the user named, at the quality "standard"; `labelled(architecture)`
    is what becomes of it where there are labelled anomalies.
    `start(network, weights)` puts pretrained weights into a new network, from a file where one is given.
    `learn(network, lesson)` trains it in place.
    """

    about: str  # a sentence for the help
    top: float  # share of the strongest cells whose mean is the score; 1.0 is the paper's mean
    architecture: Callable[[str], AnyArchitecture]
    labelled: Callable[[AnyArchitecture], AnyArchitecture]
    start: Callable[[CellNetwork, Path | None], None]
    learn: Callable[[CellNetwork, Lesson], None]
    qualities: Mapping[str, Quality] = field(default_factory=lambda: {STANDARD: Quality(384)})
    outliers: bool = True  # whether images of other things can be learnt from

    def quality(self, name: str) -> Quality:
        """The quality of that name; DataError where the method has none."""
        if name not in self.qualities:
            raise DataError(f"quality {name!r}: this method has {', '.join(self.qualities)}")
        return self.qualities[name]

    def network(self, name: str, quality: str = STANDARD) -> AnyArchitecture:
        """The architecture of the network `name` at a quality."""
        return self.quality(quality).change(self.architecture(name))


LEARNERS: Registry[Learner] = Registry("method", "fcdd.training.learners")
