"""Method `nominal`: what good parts show is described in closed form; labelled defects add a trained head."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fcdd.nn.architecture import AnyArchitecture, Architecture
from fcdd.nn.description import Description
from fcdd.nn.network import CellNetwork
from fcdd.seeds import generator_of
from fcdd.training import bank, crossvalidation, maps
from fcdd.training.head import Cells, train_head
from fcdd.training.head import gather as gather_defects
from fcdd.training.learners import LEARNERS, Learner
from fcdd.training.lesson import Lesson, some

TOP = 0.01
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
    good = maps.good_images(lesson)
    network.fit_light(some(good))
    vectors = bank.gather(network, good, lesson).features
    network.fit(vectors, generator_of(lesson.seed, "planes"))
    if not lesson.defects:
        return
    white = network.whiten(vectors[::2])
    if lesson.whole:
        train_head(network, white, labelled_cells(network, lesson), lesson.seed)
        return
    outcome = crossvalidation.fit(
        network,
        lesson,
        TOP,
        lambda some_defects: labelled_cells(network, some_defects),
        lambda cells: train_head(network, white, cells, lesson.seed),
    )
    lesson.held_out.extend(outcome.scores)


def labelled_cells(network: Description, lesson: Lesson) -> Cells:
    """Cells of labelled defects, or of whole anomalous images."""
    # What is known of good parts alone says what is strange where a defect has no mask: the head has learnt nothing.
    head, network.head = network.head, None
    try:
        return gather_defects(
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
    finally:
        network.head = head


LEARNERS.register("nominal")(
    Learner(
        about="describes good parts in closed form (whitened features, planes); labelled defects add a trained head",
        top=TOP,
        architecture=Architecture,
        labelled=with_head,
        start=start,
        learn=learn,
        outliers=False,
    )
)
