"""Method `sum`: the nominal description and the paper's head on one trunk, each weighed by how steady it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from fcdd.data import Source, Subset
from fcdd.data.views import relit
from fcdd.nn.architecture import AnyArchitecture, Architecture
from fcdd.nn.description import Description
from fcdd.nn.network import CellNetwork
from fcdd.regions import strongest
from fcdd.seeds import generator_of
from fcdd.training import maps
from fcdd.training.learners import LEARNERS, Learner, fcdd, nominal
from fcdd.training.lesson import Lesson

ASIDE = 8  # every so many good images one is kept from learning, to weigh the two parts
TOP = 0.01


def architecture(network: str) -> AnyArchitecture:
    return Architecture(network, dimensions=fcdd.DIMENSIONS)


def start(network: CellNetwork, weights: Path | None) -> None:
    nominal.start(network, weights)


def learn(network: CellNetwork, lesson: Lesson) -> None:
    """The planes as `nominal` learns them, the head as `fcdd` does, and their weights from good images set aside."""
    assert isinstance(network, Description)
    order = torch.arange(len(lesson.good))
    kept, aside = order[order % ASIDE != 0], order[order % ASIDE == 0]
    images = [lesson.images[i] for i in kept.tolist()]
    rest = replace(lesson, images=images, good=Subset(lesson.good, kept))
    head, network.head = network.head, None
    nominal.learn(network, replace(rest, defects=(), masks=()))
    network.head = head
    fcdd.train_head(network, maps.nominal(network, rest), fcdd.anomalies(network, rest), lesson.seed, lesson.quiet)
    network.weights.copy_(steadiness(network, Subset(lesson.good, aside), lesson))


@torch.inference_mode()
def steadiness(network: Description, good: Source, lesson: Lesson) -> Tensor:
    """Weights (2,) of planes and head: median / m², with m the largest image score that good images reach.

    The division by m brings both to one scale; median / m, at most 1, lets the part that is unsteady on good images
    count less. Each image is seen as it is and under another lamp.
    """
    scores: list[list[float]] = [[], []]
    for index in torch.arange(len(good)).split(4):
        images = good[index].float()
        for view in (images, relit(images, generator_of(lesson.seed, "aside", int(index[0])))):
            features = network.features(view)
            for part in (0, 1):
                network.weights.copy_(torch.eye(2)[part])
                cells = network.describe(features).flatten(1)[:, lesson.inside]
                hottest = cells.topk(strongest(cells.shape[1], TOP), 1).values.mean(1)
                scores[part] += hottest.tolist()
    found = torch.tensor(scores)
    largest = found.amax(1).clamp_min(1e-9)
    weights = found.median(1).values / largest.square()
    return weights / weights.sum().clamp_min(1e-9)


LEARNERS.register("sum")(
    Learner(
        about="both: the nominal description and the paper's head, summed",
        top=TOP,
        architecture=architecture,
        labelled=lambda given: given,
        start=start,
        learn=learn,
    )
)
