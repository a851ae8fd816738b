"""Figures of the experiments: curves over a parameter, and sheets of heatmaps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fcdd.data import DATASETS, Split
from fcdd.data.augment import TEST_TRANSFORMS
from fcdd.errors import FcddError
from fcdd.files import whole_file
from fcdd.images import resize_mask
from fcdd.nn.upsampling import normalise
from fcdd.paper.contrast import Contrast
from fcdd.paper.model import PaperModel
from fcdd.report.colours import colour, overlay
from fcdd.report.figures import contact_sheet
from fcdd.training.recipe import Recipe

CELL = 112  # side of an image on a sheet
COLUMNS = 6  # of nominal and of anomalous images each, on the sheet of a run
BATCH = 16  # heatmaps at a time
Points = Sequence[tuple[float, float]]
Pixels = NDArray[np.uint8]


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
    for suffix in (".png", ".pdf"):
        with whole_file(path.with_suffix(suffix)) as file:
            figure.savefig(file, format=suffix[1:], dpi=150)
    pyplot.close(figure)


def sheet(
    path: Path,
    rows: Mapping[str, Sequence[Pixels]],
    headings: Sequence[str],
    suffixes: Sequence[str] = (".png", ".pdf"),
) -> None:
    """Rows of images by caption, a heading a column, to `path` with each of `suffixes`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for suffix in suffixes:
        contact_sheet(list(rows.values()), headings, list(rows), path.with_suffix(suffix), cell=CELL)


def heatmap_sheet(model: PaperModel, split: Split, scores: Sequence[float], path: Path) -> None:
    """The sheet of one run: input, heatmap, overlay and truth; nominal images left, anomalous right, scores rising.

    The contrast curve refers to the maps shown, so that colours compare across the columns.
    """
    chosen = [index for label in (0, 1) for index in spread(scores, split.labels, label, COLUMNS)]
    images = split.test[torch.tensor(chosen)]
    maps = torch.cat(list(_maps(model, images)))
    values = Contrast().add(maps).normalise(maps, eta_of(model.recipe))[:, 0].numpy()
    shown = inputs(model.recipe, images)
    rows = {"input": shown, "heatmap": [colour(value) for value in values]}
    rows["overlay"] = [overlay(image, value) for image, value in zip(shown, values, strict=True)]
    rows |= truth(split, chosen, model.recipe.size)
    sheet(path, rows, [f"{split.kinds[index]} {scores[index]:.3g}" for index in chosen], (".png",))


def spread(scores: Sequence[float], labels: Tensor, label: int, count: int) -> list[int]:
    """Up to `count` test indices of `label` at evenly spaced ranks of the score, rising, both ends included."""
    of_label = sorted((i for i, y in enumerate(labels.tolist()) if y == label), key=lambda index: scores[index])
    ranks = np.linspace(0, len(of_label) - 1, min(count, len(of_label))).round().astype(int)
    return [of_label[rank] for rank in ranks]


def at_ranks(scores: Sequence[float], labels: Tensor, count: int) -> list[int]:
    """Up to `count` anomalous test indices in the middle of as many equal parts of the ranks of the score, rising."""
    anomalous = sorted((i for i, y in enumerate(labels.tolist()) if y == 1), key=lambda index: scores[index])
    parts = min(count, len(anomalous))
    return [anomalous[int((part + 0.5) / parts * len(anomalous))] for part in range(parts)]


def eta_of(recipe: Recipe) -> float:
    """The paper's quantile of the contrast curve for the recipe's dataset."""
    return DATASETS[recipe.dataset].eta


def inputs(recipe: Recipe, images: Tensor) -> list[Pixels]:
    """uint8 (N, C, H, W) at the stored size → RGB images as the network is tested on them, before preprocessing."""
    shown = TEST_TRANSFORMS[recipe.augment](images.float() / 255, recipe.size).clamp(0, 1)
    arrays = (shown.permute(0, 2, 3, 1) * 255).round().byte().numpy()
    return [np.repeat(array, 3, 2) if array.shape[2] == 1 else array for array in arrays]


def heat(
    model: PaperModel, images: Tensor, reference: Contrast | None = None, eta: float | None = None
) -> list[Pixels]:
    """The model's heatmaps of uint8 images (N, C, H, W) in colour.

    `reference` is the set the contrast curve refers to; without one, each map is its own. `eta` is the dataset's where
    none is given.
    """
    maps = torch.cat(list(_maps(model, images)))
    quantile = eta or eta_of(model.recipe)
    values = reference.normalise(maps, quantile) if reference else normalise(maps, quantile)
    return [colour(value) for value in values[:, 0].numpy()]


def balanced_contrast(model: PaperModel, split: Split) -> Contrast:
    """The contrast curve over the complete balanced test set: as many nominal as anomalous images.

    Of the more frequent label, images at even distances are taken.
    """
    by_label = [torch.nonzero(split.labels == label).flatten() for label in (0, 1)]
    count = min(map(len, by_label))
    contrast = Contrast()
    for indices in by_label:
        evenly = indices[torch.linspace(0, len(indices) - 1, count).round().long()]
        for some in evenly.split(4 * BATCH):
            for maps in _maps(model, split.test[some]):
                contrast.add(maps)
    return contrast


def truth(split: Split, indices: Sequence[int], size: int) -> dict[str, list[Pixels]]:
    """A row of the masks of test images at `size` × `size`; no row where the dataset has none."""
    if split.mask is None:
        return {}
    return {"truth": [resize_mask(split.mask(index), size).astype(np.uint8) * 255 for index in indices]}


def _maps(model: PaperModel, images: Tensor) -> Iterator[Tensor]:
    """Heatmaps (n, 1, size, size) ≥ 0 for people to look at, some images at a time.

    FCDD's A′ is divided by the A′ of a map of ones. Where σ is small beside the stride, as with 28 and 32 px, the bare
    A′ is a grid of dots, one a cell, whatever the image shows; the quotient is a weighted mean of the nearest cells.
    """
    for some in images.split(BATCH):
        if model.recipe.method != "fcdd":
            yield model.heatmaps(some)
            continue
        A = model.A(some)
        yield model.full(A) / model.full(torch.ones_like(A[:1]))
