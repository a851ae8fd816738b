"""Figures of the experiments, each as PNG and as PDF: curves over a parameter, and sheets of heatmaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fcdd.data import Split
from fcdd.data.augment import TEST_TRANSFORMS
from fcdd.errors import FcddError
from fcdd.images import resize_mask
from fcdd.nn.upsampling import normalise
from fcdd.paper.model import PaperModel
from fcdd.report.colours import colour
from fcdd.report.figures import contact_sheet
from fcdd.training.recipe import Recipe

# The quantile of the contrast curve in the authors' code, by dataset; 0.97 for the others.
ETA = {"fmnist": 0.93, "cifar10": 0.93}
DEFAULT_ETA = 0.97
CELL = 112  # side of a picture on a sheet
Points = Sequence[tuple[float, float]]


def curves(path: Path, series: Mapping[str, Points], x_name: str, y_name: str) -> None:
    """Lines through points (x, y), one a name, to `path` (.png) and beside it .pdf."""
    try:
        import matplotlib
    except ImportError:
        raise FcddError("curves need matplotlib: pip install 'fcdd[paper]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for (name, points), marker in zip(series.items(), "osD^vx+*" * len(series), strict=False):
        xs, ys = zip(*sorted(points), strict=True) if points else ((), ())
        axes.plot(xs, ys, marker=marker, label=name, linestyle="--" if name == "published" else "-")
    axes.set_xlabel(x_name)
    axes.set_ylabel(y_name)
    axes.grid(alpha=0.3)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    for suffix in (".png", ".pdf"):
        figure.savefig(path.with_suffix(suffix), dpi=150)
    pyplot.close(figure)


def sheet(path: Path, rows: Mapping[str, Sequence[NDArray[np.uint8]]], headings: Sequence[str]) -> None:
    """Rows of pictures by caption, a heading a column, to `path` (.png) and beside it .pdf."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for suffix in (".png", ".pdf"):
        contact_sheet(list(rows.values()), headings, list(rows), path.with_suffix(suffix), cell=CELL)


def spread(scores: Sequence[float], labels: Tensor, label: int, count: int) -> list[int]:
    """Up to `count` test indices of `label` at evenly spaced ranks of the score, rising, both ends included."""
    of_label = sorted((i for i, y in enumerate(labels.tolist()) if y == label), key=lambda index: scores[index])
    ranks = np.linspace(0, len(of_label) - 1, min(count, len(of_label))).round().astype(int)
    return [of_label[rank] for rank in ranks]


def eta_of(recipe: Recipe) -> float:
    return ETA.get(recipe.dataset, DEFAULT_ETA)


def inputs(recipe: Recipe, images: Tensor) -> list[NDArray[np.uint8]]:
    """uint8 (N, C, H, W) at the stored size → RGB pictures as the network is tested on them, before preprocessing."""
    shown = TEST_TRANSFORMS[recipe.augment](images.float() / 255, recipe.size).clamp(0, 1)
    pictures = (shown.permute(0, 2, 3, 1) * 255).round().byte().numpy()
    return [np.repeat(picture, 3, 2) if picture.shape[2] == 1 else picture for picture in pictures]


def heat(model: PaperModel, images: Tensor, *, local: bool = False) -> list[NDArray[np.uint8]]:
    """The model's heatmaps in colour. The contrast curve refers to all of them together, or to each alone (`local`)."""
    maps = torch.cat([model.heatmaps(batch) for batch in images.split(16)])
    values = normalise(maps, eta_of(model.recipe), None if local else maps)
    return [colour(value) for value in values[:, 0].numpy()]


def truth(split: Split, indices: Sequence[int], size: int) -> list[NDArray[np.uint8]]:
    """The masks of test images as pictures; empty where the dataset has none."""
    if split.mask is None:
        return []
    return [resize_mask(split.mask(index), size).astype(np.uint8) * 255 for index in indices]
