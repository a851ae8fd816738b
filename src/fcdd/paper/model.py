"""A trained network of a paper recipe with all it needs to be used again, and its evaluation on a split."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

import fcdd
from fcdd import metrics, modelfile
from fcdd.data import Source, Split
from fcdd.detector.detector import Detector
from fcdd.detector.settings import Settings
from fcdd.errors import ModelError
from fcdd.nn.architecture import FcnArchitecture
from fcdd.nn.fcn import FCN
from fcdd.nn.prepared import Prepared
from fcdd.nn.preprocess import Preprocess
from fcdd.progress import bar
from fcdd.reading import ImageLike, digest
from fcdd.training import recipe
from fcdd.training.lesson import some
from fcdd.training.loop import network_input
from fcdd.training.methods import Fcdd, Network, build, method_of
from fcdd.training.recipe import Recipe

EVALUATION_BATCH = 64
CALIBRATION = 1000  # nominal test images, at most, that a saved model is calibrated on


@dataclass(frozen=True)
class PaperModel:
    """A network with its preprocessing and recipe: images in, scores and heatmaps out, whatever the method.

    Images are uint8 (N, C, H, W) at the recipe's stored size.
    """

    network: Network
    preprocess: Preprocess
    recipe: Recipe

    @torch.no_grad()
    def scores(self, images: Tensor) -> Tensor:
        """(N,), higher for more anomalous images."""
        return method_of(self.recipe, self.network).scores(self._input(images)).cpu()

    def heatmaps(self, images: Tensor) -> Tensor:
        """(N, 1, size, size) ≥ 0 at the size of the network's input: A′, or what the method has in its place."""
        return self.explain(images)[1]

    @torch.no_grad()
    def explain(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Scores and heatmaps of the same images, at the price of one."""
        scores, maps = method_of(self.recipe, self.network).explain(self._input(images))
        return scores.cpu(), maps.cpu()

    @torch.no_grad()
    def A(self, images: Tensor) -> Tensor:
        """A (N, 1, h, w) ≥ 0 of FCDD; a score is the mean of a map."""
        return self._fcdd().A(self._input(images)).cpu()

    def full(self, A: Tensor, sigma: float | None = None) -> Tensor:
        """A (N, 1, h, w) → A′ (N, 1, size, size), by another σ than the recipe's where one is given."""
        return self._fcdd().full(A, sigma)

    def _input(self, images: Tensor) -> Tensor:
        self.network.eval()
        device = next(self.network.parameters()).device
        return network_input(self.recipe, self.preprocess, images).to(device)

    def _fcdd(self) -> Fcdd:
        method = method_of(self.recipe, self.network)
        if not isinstance(method, Fcdd):
            raise ModelError(f"a model of method {self.recipe.method!r} has no map A; use scores and heatmaps")
        return method

    def save(self, path: Path, seed: int, split: Split) -> None:
        """FCDD as a detector, calibrated on the nominal test images of `split`, with which every command works.

        The methods it is compared with have no cells, so they are kept as networks with their recipe.
        """
        if isinstance(self.network, FCN):
            detector_of(self, split, seed).save(path)
            return
        info = {"recipe": self.recipe.to_dict(), "preprocess": self.preprocess.to_dict(), "seed": seed}
        modelfile.write(path, "paper-model", self.network.state_dict(), info)

    @staticmethod
    def load(path: Path) -> PaperModel:
        """What `save` wrote, for the paper's tables and figures."""
        kind = modelfile.kind_of(path)
        tensors, info = modelfile.read(path, kind)
        if kind == "detector":
            if "recipe" not in info["card"]:
                raise ModelError(f"{path}: a detector of `fcdd train`, which has no recipe of the paper")
            info = {**info["card"], "recipe": {**info["card"]["recipe"]}}
            tensors = {k.removeprefix("network."): v for k, v in tensors.items() if k.startswith("network.")}
        loaded = recipe.from_dict(info["recipe"])
        network = build(loaded)
        network.load_state_dict(tensors)
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return PaperModel(network, Preprocess.from_dict(info["preprocess"]), loaded)


def detector_of(model: PaperModel, split: Split, seed: int) -> Detector:
    """The trained network as a detector that takes any image, calibrated on nominal test images of `split`.

    Those took no part in training, which is all that calibration needs; ranking figures do not depend on it.
    """
    chosen, fcn = model.recipe, model.network
    assert isinstance(fcn, FCN)
    network = Prepared(FcnArchitecture(chosen.network, chosen.preprocess, chosen.dimensions, chosen.kernel))
    network.network = fcn
    network.settle(model.preprocess, some(split.nominal).mean((0, 2, 3)).expand(3))
    nominal = (split.labels == 0).nonzero().flatten()[:CALIBRATION]
    files = _files(split.test, split.test_paths)
    held: list[ImageLike] = [files[i] for i in nominal.tolist()] if files else [_array(i) for i in split.test[nominal]]
    settings = Settings(network.architecture, method="fcdd", top=1.0, sigma=chosen.sigma, epochs=chosen.epochs)
    return Detector.of(network, settings, (chosen.size, chosen.size), _card(model, split), seed, held)


def _card(model: PaperModel, split: Split) -> dict[str, Any]:
    """What the model says of the data it was made from, and the recipe that made it."""
    paths = _files(split.nominal, split.nominal_paths)
    digests = [digest(one) for one in paths] if paths else [digest(_array(image)) for image in _each(split.nominal)]
    return {
        "good": len(split.nominal),
        "defects": 0 if split.anomalies is None else len(split.anomalies),
        "fingerprint": hashlib.sha256("".join(sorted(digests)).encode()).hexdigest(),
        "trained": [one[:16] for one in digests],
        "versions": {"fcdd": fcdd.__version__, "torch": torch.__version__, "python": platform.python_version()},
        "whole": False,
        "recipe": model.recipe.to_dict(),
        "preprocess": model.preprocess.to_dict(),
        "data": split.provenance,
    }


def _files(source: Source, known: Sequence[Path]) -> Sequence[Path]:
    """The files of a source, where its images are files: those the split names, or those it reads on demand."""
    return known or getattr(source, "paths", ())


def _each(source: Source) -> Iterator[Tensor]:
    for indices in torch.arange(len(source)).split(EVALUATION_BATCH):
        yield from source[indices]


def _array(image: Tensor) -> NDArray[np.uint8]:
    """uint8 (C, H, W) → (H, W) where gray, else (H, W, 3)."""
    pixels: NDArray[np.uint8] = image.permute(1, 2, 0).contiguous().numpy()
    return pixels[..., 0] if pixels.shape[2] == 1 else pixels


@dataclass(frozen=True)
class Evaluation:
    """Figures of one model on one test set. Pixel figures are None where the dataset has no masks."""

    image_auroc: float
    pixel_auroc: float | None  # pooled over all pixels of all test images: what compares with other papers
    pixel_auroc_mean: float | None  # mean over the anomalous images
    scores: list[float]


def batches(source: Source, quiet: bool = False) -> Iterator[tuple[Tensor, Tensor]]:
    """(indices, images) of all of `source`, batch by batch."""
    with bar("scoring", len(source), quiet=quiet) as shown:
        for indices in torch.arange(len(source)).split(EVALUATION_BATCH):
            yield indices, source[indices]
            shown.advance(len(indices))


def score(model: PaperModel, source: Source, quiet: bool = False) -> Iterator[tuple[Tensor, Tensor]]:
    """(indices, A) of all images of `source`, batch by batch."""
    return ((indices, model.A(images)) for indices, images in batches(source, quiet))


def evaluate(model: PaperModel, split: Split, quiet: bool = False) -> Evaluation:
    """Image AUROC of the scores; pixel AUROC of the heatmaps, resized to each mask's original size."""
    scores: list[float] = []
    pooled, each = metrics.PixelHistogram(), metrics.PixelMean()
    for indices, images in batches(split.test, quiet):
        if split.mask is None:
            scores += model.scores(images).tolist()
            continue
        some, maps = model.explain(images)
        scores += some.tolist()
        for index, heat in zip(indices.tolist(), maps, strict=True):
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
    """A heatmap (1, H, W) at the mask's size, bilinear: nearest neighbour would shift it by up to half a pixel."""
    if heat.shape[1:] == mask.shape:
        return heat[0].numpy()
    return F.interpolate(heat[None], mask.shape, mode="bilinear", align_corners=False)[0, 0].numpy()
