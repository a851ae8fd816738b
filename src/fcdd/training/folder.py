"""The paper's networks trained on a user's own folder, through the same loop as the paper's data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fcdd import images
from fcdd.data import Source
from fcdd.data.sources import Images
from fcdd.nn import preprocess as preprocessing
from fcdd.nn.networks import PRETRAINED, load_weights
from fcdd.nn.prepared import Prepared
from fcdd.training import loop, recipe
from fcdd.training.lesson import Lesson, some
from fcdd.training.recipe import Recipe

RANDOM = Path("none")  # in place of a weights file: start from random weights
FROZEN = 3  # stages of a pretrained VGG that keep their weights, as in the paper
MARGIN = 15 / 14  # images are kept larger than the input by this, 240 for 224, so that crops can vary
# Views a training sees in all: minutes on two cores. The paper's own numbers of epochs are in its recipes.
VIEWS_SMALL, VIEWS_LARGE = 60_000, 2_400


def start(network: Prepared, weights: Path | None) -> None:
    """Pretrained weights where the network has some, and the first stages frozen, as the paper does on MVTec-AD."""
    name = network.architecture.network
    if name in PRETRAINED and weights != RANDOM:
        load_weights(network.network, name, weights)
        network.network.freeze(FROZEN)


def recipe_of(network: Prepared, lesson: Lesson) -> Recipe:
    """The recipe of a training on this lesson: Fashion-MNIST's for small inputs, MVTec-AD's for large ones."""
    size, small = network.network.size, network.network.size < 64
    views = VIEWS_SMALL if small else VIEWS_LARGE
    values: dict[str, Any] = {
        "dataset": recipe.FOLDER,
        "exposure": "labelled" if lesson.defects else "folder" if lesson.outliers else "synthetic",
        "objective": "pixelwise-cells" if lesson.defects else "fcdd",
        "network": network.architecture.network,
        "dimensions": network.architecture.dimensions,
        "kernel": network.architecture.kernel,
        "size": size,
        "stored": round(size * MARGIN),
        "augment": "mvtec",
        "preprocess": network.architecture.preprocess,
        "epochs": lesson.epochs or max(1, round(views / len(lesson.good))),
        "batch": 128 if small else 16,
        "optimiser": "sgd",
        "lr": 0.01,
        "lr_factor": 1.0,
        "cooldown": recipe.SHORT_COOLDOWN,
        "weight_decay": 1e-4,
        "sigma": network.sigma,
    }
    return recipe.from_dict(values)


def learn(network: Prepared, lesson: Lesson) -> None:
    """Train the network in place: eq. 2 with synthetic anomalies or outliers, eq. 3 with labelled ones."""
    chosen, channels = recipe_of(network, lesson), network.network.channels
    nominal = Images(lesson.images, chosen.stored, channels).load()
    preprocess = preprocessing.fit(network.architecture.preprocess, nominal)  # type: ignore[arg-type]
    supply = loop.Supply(chosen, nominal, *_anomalies(lesson, chosen.stored, channels), preprocess)
    checkpoint = None if lesson.work is None else lesson.work / "checkpoint.safetensors"
    loop.train(network.network, supply, lesson.seed, checkpoint, quiet=lesson.quiet)
    network.settle(preprocess, some(lesson.good).mean((0, 2, 3)))


def _anomalies(lesson: Lesson, side: int, channels: int) -> tuple[Source | None, Tensor | None]:
    """Auxiliary anomalies (K, C, side, side) and their masks (K, 1, side, side); None and None for synthetic ones.

    A labelled anomaly without a mask is anomalous everywhere, which makes eq. 3 the image-level eq. 2.
    """
    if lesson.defects:
        whole = np.ones((side, side), np.bool_)
        masks = [whole if mask is None else images.resize_mask(mask, side) for mask in lesson.masks]
        truth = torch.from_numpy(np.stack(masks)[:, None].astype(np.uint8))
        return Images(lesson.defects, side, channels).load(), truth
    return (Images(lesson.outliers, side, channels).load() if lesson.outliers else None), None
