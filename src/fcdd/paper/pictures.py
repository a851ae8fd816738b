"""Pictures of a paper model: test images beside their heatmaps, by increasing score."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from fcdd.data import Split
from fcdd.data.augment import TEST_TRANSFORMS
from fcdd.nn.upsampling import normalise
from fcdd.paper.model import PaperModel
from fcdd.report.colours import colour, overlay
from fcdd.report.figures import contact_sheet

COLUMNS = 6  # of nominal and of anomalous images each
CELL = 144  # side of a picture on the sheet


def heatmap_sheet(model: PaperModel, split: Split, scores: list[float], path: Path, eta: float = 0.99) -> None:
    """Write rows of input, heatmap and overlay (and truth): nominal images left, anomalous right, scores rising.

    The contrast curve has all shown maps as its reference, so colours compare across columns.
    """
    chosen = torch.tensor([*_spread(scores, split, 0), *_spread(scores, split, 1)])
    images = split.test[chosen]
    maps = model.heatmaps(images)
    heat = normalise(maps, eta, reference=maps)[:, 0].numpy()
    shown = TEST_TRANSFORMS[model.recipe.augment](images.float() / 255, model.recipe.size)
    pictures = [_rgb(image.numpy()) for image in shown]
    rows = [pictures, [colour(h) for h in heat], [overlay(p, h) for p, h in zip(pictures, heat, strict=True)]]
    captions = ["input", "heatmap", "overlay"]
    if split.mask is not None:
        rows.append([_truth(split.mask(i), model.recipe.size) for i in chosen.tolist()])
        captions.append("truth")
    headings = [f"{split.kinds[i]} {scores[i]:.3g}" for i in chosen.tolist()]
    contact_sheet(rows, headings, captions, path, cell=CELL)


def _spread(scores: list[float], split: Split, label: int) -> list[int]:
    """Test indices of `label` at evenly spaced ranks of the score, lowest and highest included."""
    of_label = sorted((i for i, y in enumerate(split.labels.tolist()) if y == label), key=lambda i: scores[i])
    ranks = np.linspace(0, len(of_label) - 1, min(COLUMNS, len(of_label))).round().astype(int)
    return [of_label[r] for r in ranks]


def _rgb(image: np.ndarray) -> np.ndarray:
    """(C, H, W) in [0, 1] → (H, W, 3) uint8."""
    picture = (image.transpose(1, 2, 0) * 255).round().astype(np.uint8)
    return np.repeat(picture, 3, 2) if picture.shape[2] == 1 else picture


def _truth(mask: np.ndarray, size: int) -> np.ndarray:
    rows = np.arange(size) * mask.shape[0] // size
    columns = np.arange(size) * mask.shape[1] // size
    return np.repeat((mask[rows][:, columns] * 255).astype(np.uint8)[..., None], 3, 2)
