"""Method `nominal`: what good parts show is described in closed form; labelled defects add a trained head."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from fcdd.anomalies.cues import Marked
from fcdd.nn.architecture import AnyArchitecture, Architecture
from fcdd.nn.description import Description
from fcdd.nn.network import CellNetwork
from fcdd.seeds import generator_of
from fcdd.training import bank
from fcdd.training.head import gather as gather_defects
from fcdd.training.head import train_head
from fcdd.training.learners import LEARNERS, Learner
from fcdd.training.lesson import Lesson, some

DIMENSIONS = 32  # of the hypersphere that labelled defects train


def with_head(given: AnyArchitecture) -> AnyArchitecture:
    """Planes and a head."""
    assert isinstance(given, Architecture)
    return replace(given, dimensions=DIMENSIONS)


def start(network: CellNetwork, weights: Path | None) -> None:
    """Pretrained weights for the trunk; planes and head begin when good images are seen."""
    assert isinstance(network, Description)
    network.trunk.load(weights)


def learn(network: CellNetwork, lesson: Lesson) -> None:
    """Light, whitening and planes from a bank of good features; then the head from labelled defects, if any."""
    assert isinstance(network, Description)
    good = Marked(lesson.good, lesson.cues, lesson.seed) if lesson.cues else lesson.good
    network.fit_light(some(good))
    vectors = bank.gather(
        network, good, lesson.inside, lesson.vectors, lesson.seed, lesson.work, lesson.identity, lesson.quiet
    )
    network.fit(vectors, generator_of(lesson.seed, "planes"))
    if lesson.defects:
        _learn_defects(network, lesson, vectors)


def _learn_defects(network: Description, lesson: Lesson, vectors: torch.Tensor) -> None:
    """Train the head on labelled defects, or on whole anomalous images; `vectors` (M, C) are the bank's."""
    # The planes alone say what is strange where a defect has no mask: the head has learnt nothing yet.
    head, network.head = network.head, None
    cells = gather_defects(
        network,
        lesson.defects,
        lesson.masks,
        lesson.shape,
        lesson.inside,
        lesson.seed,
        lesson.cues,
        lesson.whole,
        lesson.quiet,
    )
    network.head = head
    train_head(network, network.whiten(vectors[::2]), cells, lesson.seed)


LEARNERS.register("nominal")(
    Learner(
        about="describes good parts in closed form (whitened features, planes); labelled defects add a trained head",
        top=0.01,
        architecture=Architecture,
        labelled=with_head,
        start=start,
        learn=learn,
        outliers=False,
    )
)
