"""Method `sum`: what good parts show, in closed form and at two scales, and the paper's head on synthetic defects.

No description is best on every part: planes know surfaces, centres know which things belong where on a part, and the
head knows what defects look like. Each counts in units of what good images reach in it; no label is needed for that.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from fcdd.data import Source
from fcdd.data.views import relit
from fcdd.nn.architecture import AnyArchitecture, Architecture
from fcdd.nn.description import Description
from fcdd.nn.network import CellNetwork
from fcdd.regions import strongest
from fcdd.seeds import generator_of
from fcdd.training import bank, crossvalidation, maps, synthesis
from fcdd.training.head import Cells, train_head
from fcdd.training.learners import LEARNERS, STANDARD, Learner, Quality, nominal
from fcdd.training.lesson import Lesson, some
from fcdd.training.parallel import each

PLANES, CENTRES = 128, 3000
WIDTH = 256  # of the head's first layer
WEIGHED = 64  # good images that weigh the parts, at most
# What each part counts. The head is taught to say nothing about good parts, so it is quiet on most and loud on a few.
SHARES = {"planes": 1.25, "centres": 1.0, "head": 0.15}
TAIL = 2.0  # standard deviations of the logarithm of good scores above their mean: what the highest of them reach
TOP = 0.01


def architecture(network: str) -> AnyArchitecture:
    return Architecture(
        network, planes=PLANES, directions=16, dimensions=nominal.DIMENSIONS, width=WIDTH, centres=CENTRES
    )


def _sized(planes: int, centres: int, usual: AnyArchitecture) -> AnyArchitecture:
    return replace(usual, planes=planes, centres=centres) if isinstance(usual, Architecture) else usual


QUALITIES = {
    "fast": Quality(256, partial(_sized, 64, 1500)),
    STANDARD: Quality(384),
    "fine": Quality(512, partial(_sized, 256, 6000)),
}


def with_head(given: AnyArchitecture) -> AnyArchitecture:
    """What labelled defects can be learnt with, if nothing else was wanted."""
    assert isinstance(given, Architecture)
    return given if given.dimensions else nominal.with_head(given)


def learn(network: CellNetwork, lesson: Lesson) -> None:
    """Planes and centres from a bank of good features, the head from defects, the weights from good images."""
    assert isinstance(network, Description)
    good = maps.good_images(lesson)
    network.fit_light(some(good))
    known = bank.gather(network, good, lesson)
    network.fit(known.features, generator_of(lesson.seed, "planes"))
    if network.centres is not None:
        chance = generator_of(lesson.seed, "centres")
        network.centres.fit(known.coarse, known.where, known.owners, network.trunk.widths, chance)
    if network.head is None:
        network.weights.copy_(weighed(network, good, lesson))
        return
    white = network.whiten(known.features[::2])

    def train(cells: Cells) -> None:
        train_head(network, white, cells, lesson.seed)

    made = nominal.labelled_cells(network, lesson) if lesson.whole else synthesis.gather(network, lesson)
    train(made)
    network.weights.copy_(weighed(network, good, lesson))
    if lesson.defects and not lesson.whole:
        outcome = crossvalidation.fit(
            network, lesson, TOP, lambda defects: nominal.labelled_cells(network, defects), train, made
        )
        lesson.held_out.extend(outcome.scores)


@torch.inference_mode()
def weighed(network: Description, good: Source, lesson: Lesson) -> Tensor:
    """Weights (3,) of the parts: the share of each, divided by q, the score that good images hardly exceed.

    So a part that is loud on good images counts less. q is a quantile of the log-normal distribution that fits the
    scores: the largest of a few would be chance. Each image is seen as it is and under another lamp, and is compared
    with the examples of other images alone, because its own are always near. Planes and head are too small to know an
    image by heart.
    """

    def seen(index: Tensor) -> dict[str, list[float]]:
        images = good[index].float()
        found: dict[str, list[float]] = {name: [] for name in network.parts}
        for view in (images, relit(images, generator_of(lesson.seed, "weighing", int(index[0])))):
            for name, cells in network.maps(view, without=index).items():
                inside = cells.flatten(1)[:, lesson.inside]
                found[name] += inside.topk(strongest(inside.shape[1], TOP), 1).values.mean(1).tolist()
        return found

    step = max(1, len(good) // WEIGHED)
    parts = each(seen, torch.arange(0, len(good), step)[:WEIGHED].split(4))
    scores = {name: [score for part in parts for score in part[name]] for name in network.parts}
    weights = torch.zeros(len(network.PARTS))
    for name, found in scores.items():
        values = torch.tensor(found).clamp_min(1e-9)
        high = (values.log().mean() + TAIL * values.log().std(correction=0)).exp()
        weights[network.PARTS.index(name)] = SHARES[name] / high
    return weights / weights.sum().clamp_min(1e-9)


def start(network: CellNetwork, weights: Path | None) -> None:
    nominal.start(network, weights)


LEARNERS.register("sum")(
    Learner(
        about="both: good parts in closed form at two scales, and the paper's head on synthetic defects, summed",
        top=TOP,
        architecture=architecture,
        labelled=with_head,
        start=start,
        learn=learn,
        qualities=QUALITIES,
        outliers=False,
    )
)
