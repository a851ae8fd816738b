"""Method `fcdd`: the paper's, on a user's own folder, with synthetic anomalies, other images or labelled defects."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from fcdd.nn import objectives
from fcdd.nn.architecture import AnyArchitecture, Architecture, FcnArchitecture
from fcdd.nn.description import Description
from fcdd.nn.fcn import NETWORKS
from fcdd.nn.network import CellNetwork
from fcdd.nn.prepared import Prepared
from fcdd.progress import bar
from fcdd.seeds import generator_of
from fcdd.training import folder, maps
from fcdd.training.head import NOISE, STEPS
from fcdd.training.learners import LEARNERS, STANDARD, Learner, Quality
from fcdd.training.lesson import Lesson, some
from fcdd.training.maps import Maps

DIMENSIONS = 32  # of the head's hypersphere: with the paper's one, anomalies get stuck on the wrong side of zero
BATCH = 16  # views a step, half of them anomalous
SHARE = 0.25  # of a view's cells that a step looks at
WHITENED = 60_000  # cells from which the whitening is learnt


def architecture(network: str) -> AnyArchitecture:
    """A network of the paper where the name is one of those, else a frozen trunk with a head."""
    if network in NETWORKS:
        return FcnArchitecture(network, dimensions=DIMENSIONS)
    return Architecture(network, planes=0, dimensions=DIMENSIONS)


def start(network: CellNetwork, weights: Path | None) -> None:
    """Pretrained weights for the trunk, or for the paper's VGG."""
    if isinstance(network, Prepared):
        folder.start(network, weights)
        return
    assert isinstance(network, Description)
    network.trunk.load(weights)


def learn(network: CellNetwork, lesson: Lesson) -> None:
    """Eq. 2 with synthetic anomalies or outliers, eq. 3 with labelled anomalies and their masks."""
    if isinstance(network, Prepared):
        folder.learn(network, lesson)
        return
    assert isinstance(network, Description)
    network.fit_light(some(lesson.good))
    good = maps.nominal(network, lesson)
    cells = good.features.flatten(0, 1)
    network.fit(cells[:: max(1, len(cells) // WHITENED)].float(), generator_of(lesson.seed, "planes"))
    train_head(network, good, anomalies(network, lesson), lesson.seed, lesson.quiet)


def anomalies(network: Description, lesson: Lesson) -> list[Maps]:
    """The sources of anomalies, from each of which a step draws as many: what the user gave, else synthetic ones.

    Labelled anomalies are few, so a quarter of the draws is confetti beside them.
    """
    auxiliary = maps.outliers(network, lesson) if lesson.outliers else maps.confetti(network, lesson)
    if lesson.defects:
        return [*[maps.labelled(network, lesson)] * 3, auxiliary]
    return [auxiliary] if lesson.outliers else [auxiliary, maps.local(network, lesson)]


def train_head(network: Description, good: Maps, pools: Sequence[Maps], seed: int, quiet: bool = True) -> None:
    """Train the head by the paper's objectives on maps of features.

    A step draws half its views from `good` and half evenly from `pools`, and of each view a random share of the cells,
    whose means estimate those of the whole map.
    """
    assert network.head is not None
    generator = generator_of(seed, "head")
    head = network.head.train().requires_grad_(True)
    head.reset(generator)
    optimiser = torch.optim.AdamW(head.parameters(), 1e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=STEPS)
    drawn = [(good, BATCH // 2), *((pool, BATCH // 2 // len(pools)) for pool in pools)]
    with bar("training", STEPS, quiet=quiet) as shown:
        for _ in range(STEPS):
            parts = [_draw(pool, count, generator) for pool, count in drawn]
            features, truth = (torch.cat(part) for part in zip(*parts, strict=True))
            white = network.whiten(features.flatten(0, 1).float())
            white = white + NOISE * torch.randn(white.shape, generator=generator)
            A = objectives.pseudo_huber(head(white)).view(len(truth), 1, 1, -1)
            loss = objectives.fcdd_pixelwise(A, truth[:, None, None])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            shown.advance(1, f"loss {loss.item():.3f}")
    head.eval().requires_grad_(False)


def _draw(pool: Maps, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Features (count, m, C) and truth (count, m) of random cells of random views."""
    cells = pool.features.shape[1]
    views = torch.randint(len(pool), (count, 1), generator=generator)
    chosen = torch.randint(cells, (count, max(1, int(SHARE * cells))), generator=generator)
    return pool.features[views, chosen], pool.truth[views, chosen]


LEARNERS.register("fcdd")(
    Learner(
        about="the paper's method: learns by gradient from synthetic anomalies, outliers or labelled defects",
        top=1.0,
        qualities={STANDARD: Quality(256)},
        architecture=architecture,
        labelled=lambda given: given,
        start=start,
        learn=learn,
    )
)
