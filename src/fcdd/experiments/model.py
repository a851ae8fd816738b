"""A trained network of a paper recipe with all it needs to be used again, and its evaluation on a split."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from fcdd import metrics, modelfile, networks, recipe
from fcdd.data import Source, Split
from fcdd.data.augment import TEST_TRANSFORMS
from fcdd.data.preprocess import Preprocess
from fcdd.heatmaps import upsample
from fcdd.networks.paper import FCN
from fcdd.objectives import pseudo_huber
from fcdd.progress import bar
from fcdd.recipe import Recipe

EVALUATION_BATCH = 64


@dataclass(frozen=True)
class PaperModel:
    """φ with its preprocessing and recipe: images in, A and A′ out."""

    network: FCN
    preprocess: Preprocess
    recipe: Recipe

    @torch.no_grad()
    def A(self, images: Tensor) -> Tensor:
        """uint8 images (N, C, H, W) at the recipe's stored size → A (N, 1, h, w) ≥ 0; a score is the mean of a map."""
        self.network.eval()
        images = TEST_TRANSFORMS[self.recipe.augment](images.float() / 255, self.recipe.size)
        images = self.preprocess(images).contiguous(memory_format=torch.channels_last)
        return pseudo_huber(self.network(images.to(next(self.network.parameters()).device))).cpu()

    def full(self, A: Tensor) -> Tensor:
        """A (N, 1, h, w) → A′ (N, 1, size, size)."""
        return upsample(A, self.network.field, self.recipe.size, self.recipe.sigma)

    def save(self, path: Path, seed: int) -> None:
        info = {"recipe": self.recipe.to_dict(), "preprocess": self.preprocess.to_dict(), "seed": seed}
        modelfile.write(path, "paper-model", self.network.state_dict(), info)

    @staticmethod
    def load(path: Path) -> PaperModel:
        tensors, info = modelfile.read(path, "paper-model")
        loaded = recipe.from_dict(info["recipe"])
        network = build(loaded)
        network.load_state_dict(tensors)
        return PaperModel(network, Preprocess.from_dict(info["preprocess"]), loaded)


@dataclass(frozen=True)
class Evaluation:
    """Figures of one model on one test set. Pixel figures are None where the dataset has no masks."""

    image_auroc: float
    pixel_auroc: float | None  # pooled over all pixels of all test images: what compares with other papers
    pixel_auroc_mean: float | None  # mean over the anomalous images
    scores: list[float]


def build(chosen: Recipe) -> FCN:
    """The recipe's network with fresh weights and its first layers frozen."""
    options = {"dimensions": chosen.dimensions, **({"kernel": chosen.kernel} if chosen.kernel else {})}
    network = networks.build(chosen.network, **options)
    network.freeze(chosen.freeze)
    return network


def score(model: PaperModel, source: Source, quiet: bool = False) -> Iterator[tuple[Tensor, Tensor]]:
    """(indices, A) of all images of `source`, batch by batch."""
    with bar("scoring", len(source), quiet=quiet) as shown:
        for indices in torch.arange(len(source)).split(EVALUATION_BATCH):
            yield indices, model.A(source[indices])
            shown.advance(len(indices))


def evaluate(model: PaperModel, split: Split, quiet: bool = False) -> Evaluation:
    """Image AUROC of the mean of A; pixel AUROC of A′, resized to each mask's original size."""
    scores: list[float] = []
    pooled, each = metrics.PixelHistogram(), metrics.PixelMean()
    for indices, A in score(model, split.test, quiet):
        scores += A.flatten(1).mean(1).tolist()
        if split.mask is None:
            continue
        for index, heat in zip(indices.tolist(), model.full(A), strict=True):
            mask = split.mask(index)
            resized = _to_mask(heat, mask)
            pooled.update(resized, mask)
            each.update(resized, mask)
    masked = split.mask is not None
    return Evaluation(
        image_auroc=metrics.auroc(scores, split.labels.numpy()),
        pixel_auroc=pooled.auroc() if masked else None,
        pixel_auroc_mean=each.auroc() if masked else None,
        scores=scores,
    )


def _to_mask(heat: Tensor, mask: np.ndarray) -> np.ndarray:
    """A′ (1, H, W) at the mask's size, bilinear: nearest neighbour would shift it by up to half a pixel."""
    if heat.shape[1:] == mask.shape:
        return heat[0].numpy()
    return F.interpolate(heat[None], mask.shape, mode="bilinear", align_corners=False)[0, 0].numpy()
