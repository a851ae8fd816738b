"""Closer looks at a trained model that an experiment wants besides its AUROC; each gives JSON-able figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from fcdd import metrics
from fcdd.data import Split, voc
from fcdd.data.sources import Images
from fcdd.errors import DataError
from fcdd.paper import watermark
from fcdd.paper.model import EVALUATION_BATCH, PaperModel
from fcdd.paper.run import Job, open_split

SIGMAS = tuple(range(4, 17, 2))
MARK_SEED = 1  # of the marks on test images, another than of those in training


def widths(job: Job, folder: Path) -> dict[str, Any]:
    """Pixel AUROC of the saved model's A′ at each σ of `SIGMAS`, pooled and as mean over images.

    The network runs once.
    """
    split = open_split(job)
    if split.mask is None:
        raise DataError(f"{split.name}: pixel figures need masks, which this dataset does not have")
    model = PaperModel.load(folder / "model.safetensors")
    pooled = {width: metrics.PixelHistogram() for width in SIGMAS}
    each = {width: metrics.PixelMean() for width in SIGMAS}
    for indices in torch.arange(len(split.test)).split(EVALUATION_BATCH):
        A = model.A(split.test[indices])
        masks = [split.mask(index) for index in indices.tolist()]
        for width in SIGMAS:
            for heat, mask in zip(model.full(A, float(width)), masks, strict=True):
                resized = F.interpolate(heat[None], mask.shape, mode="bilinear", align_corners=False)[0, 0].numpy()
                pooled[width].update(resized, mask)
                each[width].update(resized, mask)
    return {
        "pixel_auroc": {str(width): one.auroc() for width, one in pooled.items()},
        "pixel_auroc_mean": {str(width): one.auroc() for width, one in each.items()},
    }


def clever_hans(job: Job, folder: Path) -> dict[str, Any]:
    """What the model makes of a planted mark, on all test images with and without it.

    For horses and for other images: the share of heat (sum of A′) that lies on the mark's letters and on the box around
    them, beside the share of the area they take; and the rise of the score by the mark, in standard deviations of the
    scores of unmarked nominal images. Then the share on the place of the real marks, on VOC's horses that bear one.
    """
    split = open_split(job)
    model = PaperModel.load(folder / "model.safetensors")
    plain, marked, shares = [], [], []
    for indices in torch.arange(len(split.test)).split(EVALUATION_BATCH):
        images = split.test[indices]
        pairs = [
            watermark.plant(image.permute(1, 2, 0).numpy(), MARK_SEED, str(index))
            for index, image in zip(indices.tolist(), images, strict=True)
        ]
        plain += model.scores(images).tolist()
        scores, maps = model.explain(torch.stack([torch.from_numpy(planted).permute(2, 0, 1) for planted, _ in pairs]))
        marked += scores.tolist()
        shares += [_shares(heat[0].numpy(), mask) for heat, (_, mask) in zip(maps, pairs, strict=True)]
    labels = split.labels.numpy()
    before, after, each = np.array(plain), np.array(marked), np.array(shares)
    spread = before[labels == 0].std() or 1.0
    figures: dict[str, Any] = {"plain": plain, "marked": marked, "labels": labels.tolist()}
    planted = voc.folder(job.data) / watermark.RECORD
    figures["planted"] = len(json.loads(planted.read_text())["marked"]) if planted.is_file() else 0
    figures["horses"] = 0 if split.anomalies is None else len(split.anomalies)
    for kind, label in (("other", 0), ("anomalous", 1)):
        names = ("letters_heat", "letters_area", "box_heat", "box_area")
        means = dict(zip(names, each[labels == label].mean(0).tolist(), strict=True))
        rise = float((after - before)[labels == label].mean() / spread)
        figures[kind] = {**means, "rise": rise}
    figures["auroc"] = metrics.auroc(before, labels)
    figures["real"] = _real(model, job, [index for index in range(len(labels)) if labels[index]], split)
    # A nominal image with the mark against a horse without it: below one half the mark counts for more than the horse.
    fooled = np.where(labels == 1, before, after)
    figures["auroc_marked_nominal"] = metrics.auroc(fooled, labels)
    return figures


def real_marks(job: Job) -> Images:
    """VOC's own marked horses, which are in neither part of the problem, at the recipe's stored size."""
    return Images(voc.watermarked(job.data), job.recipe.stored)


def _real(model: PaperModel, job: Job, horses: Sequence[int], split: Split) -> dict[str, float]:
    """Heat on the place of the real mark: its share on images that bear it and on unmarked test horses, and of area."""
    real = real_marks(job)
    if not len(real):
        return {}
    place = _real_box(model.recipe.size)
    figures = {"images": float(len(real)), "area": float(place.mean())}
    for name, images in (("marked", real[torch.arange(len(real))]), ("unmarked", split.test[torch.tensor(horses)])):
        maps = torch.cat([model.heatmaps(some) for some in images.split(EVALUATION_BATCH)])[:, 0].numpy()
        figures[name] = float(np.mean([heat[place].sum() / (heat.sum() or 1.0) for heat in maps]))
    return figures


def _real_box(size: int) -> NDArray[np.bool_]:
    top, bottom, left, right = (round(part * size) for part in watermark.REAL_BOX)
    place = np.zeros((size, size), bool)
    place[top:bottom, left:right] = True
    return place


def _shares(heat: NDArray[np.float32], mask: NDArray[np.bool_]) -> tuple[float, float, float, float]:
    """Share of heat and of area of the mark's letters, then of the box around them."""
    rows, columns = np.where(mask.any(1))[0], np.where(mask.any(0))[0]
    box = np.zeros_like(mask)
    box[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] = True
    total = float(heat.sum()) or 1.0
    return tuple(float(value) for region in (mask, box) for value in (heat[region].sum() / total, region.mean()))  # type: ignore[return-value]


PROBES: dict[str, Callable[[Job, Path], dict[str, Any]]] = {"widths": widths, "clever-hans": clever_hans}
