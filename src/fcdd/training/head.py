"""What a few labelled defects teach: a hypersphere head beside the nominal planes.

A defect is somewhere in its image: the head learns its cells, one by one. Where whole images are another thing than
the part, no cell stands for the image: the head learns bags of cells by the paper's objective, on their mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Generator, Tensor

from fcdd.anomalies.cues import Cue, Marked
from fcdd.data.sources import Images
from fcdd.data.views import relit, turned
from fcdd.errors import DataError
from fcdd.nn import objectives
from fcdd.nn.description import Description
from fcdd.progress import bar
from fcdd.reading import ImageLike
from fcdd.seeds import generator_of

VIEWS = 10  # of each defect: a handful of images must stand for all that will come
ENOUGH = 500  # views of all defects together
STEPS = 400
NOMINAL, ANOMALOUS = 2048, 2048  # cells a step
BAGS, BAG = 16, 64  # of whole images: bags a step, and cells in each
NOISE = 0.5  # standard deviations added to whitened features, so that the head learns regions and not points


@dataclass(frozen=True)
class Cells:
    """Whitened features of the labelled images."""

    anomalous: Tensor  # (M, k, D): single cells of defects, k = 1, or bags of whole images, k = BAG
    weight: Tensor  # (M,) each image weighs the same, however large its defect
    nominal: Tensor  # (K, D) of the same images, outside of the defect


@torch.inference_mode()
def gather(
    description: Description,
    given: Sequence[ImageLike],
    masks: Sequence[NDArray[np.bool_] | None],
    shape: tuple[int, int],
    inside: Tensor,
    seed: int,
    cues: Sequence[Cue] = (),
    whole: bool = False,
    quiet: bool = True,
) -> Cells:
    """Cells of each defect and of the good surface around it, over views of every image; `inside` (h·w,) bool.

    A defect without mask lends the cells that the nominal planes find strangest, a `whole` image bags of cells from
    anywhere; neither those in the place of one of `cues`: half of these images carry a cue there, so that it is no
    sign of a defect.
    """
    found: list[tuple[Tensor, Tensor, Tensor]] = []
    inputs = Images(given, shape)
    marked = Marked(inputs, cues, seed) if cues else inputs
    ruled_out = torch.from_numpy(np.any([np.zeros(shape, np.bool_), *(cue.mask(shape) for cue in cues)], axis=0))
    count = max(1, min(VIEWS, ENOUGH // len(given)))
    with bar("reading defects", len(given), quiet=quiet) as shown:
        for index, mask in enumerate(masks):
            image = (inputs if mask is not None else marked)[torch.tensor([index])].float()
            if whole:
                views = _views(image, ruled_out[None, None].float(), count, seed, index)
                parts = [_bag(description, *view, inside, generator_of(seed, "bag", index)) for view in views]
            else:
                views = _views(image, _mask_of(description, image, mask, ruled_out, inside), count, seed, index)
                parts = [_cells(description, *view, inside) for view in views]
            anomalous, nominal = (torch.cat(part) for part in zip(*parts, strict=True))
            found.append((anomalous, torch.full((len(anomalous),), 1 / max(1, len(anomalous))), nominal))
            shown.advance(1)
    anomalous, weight, nominal = (torch.cat(part) for part in zip(*found, strict=True))
    if not len(anomalous):
        raise DataError("no labelled defect lies in the region of interest: enlarge it, or leave the defects out")
    return Cells(anomalous.clone(), weight, nominal.clone())


def _views(image: Tensor, mask: Tensor, count: int, seed: int, index: int) -> Iterator[tuple[Tensor, Tensor]]:
    """`count` views of the image (1, 3, H, W) with its mask (1, 1, H, W): as it is, then turned, under other lamps."""
    yield image, mask
    for view in range(1, count):
        generator = generator_of(seed, "defect", index, view)
        moved = turned(torch.cat([image, mask], 1), generator)
        yield relit(moved[:, :3], generator), moved[:, 3:]


def _mask_of(
    description: Description, image: Tensor, mask: NDArray[np.bool_] | None, ruled_out: Tensor, inside: Tensor
) -> Tensor:
    """The mask at the input's shape, (1, 1, H, W) in [0, 1]; where unknown, the strangest hundredth of the cells
    `inside` (h·w,), of which none lies in `ruled_out` (H, W)."""
    if mask is not None:
        truth = torch.from_numpy(mask)[None, None].float()
        return F.interpolate(truth, image.shape[2:], mode="bilinear", antialias=True)
    A = description(image)
    A = A.masked_fill(F.adaptive_max_pool2d(ruled_out[None, None].float(), A.shape[2:]) > 0, 0.0)
    A = A.masked_fill(~inside.view(A.shape), 0.0)
    limit = A.flatten()[inside].quantile(0.99)
    return F.interpolate((limit <= A).float(), image.shape[2:], mode="nearest")


def _cells(description: Description, image: Tensor, truth: Tensor, inside: Tensor) -> tuple[Tensor, Tensor]:
    """Whitened features of the cells that the mask covers by more than half (or most), (M, 1, D), and of those it
    leaves free, (K, D)."""
    features = description.features(image)
    covered = F.adaptive_avg_pool2d(truth, (features.shape[2], features.shape[3])).flatten()
    white = description.whiten(features[0].flatten(1).T)
    limit = 0.5 if (covered > 0.5).any() else 0.6 * float(covered.max())
    return white[(covered > limit) & inside][:, None], white[(covered == 0) & inside][::8]


def _bag(
    description: Description, image: Tensor, ruled_out: Tensor, inside: Tensor, generator: Generator
) -> tuple[Tensor, Tensor]:
    """Whitened features of cells drawn from all that `ruled_out` does not touch, (1, BAG, D), and none as nominal."""
    features = description.features(image)
    touched = F.adaptive_max_pool2d(ruled_out, (features.shape[2], features.shape[3])).flatten() > 0
    # A cue all over the image leaves nothing else to learn from.
    free = inside & ~touched if bool((inside & ~touched).any()) else inside
    white = description.whiten(features[0].flatten(1).T)[free]
    return white[torch.randint(len(white), (1, BAG), generator=generator)], white[:0]


def train_head(description: Description, nominal: Tensor, cells: Cells, seed: int) -> None:
    """Hypersphere classification: the mean of A over nominal cells minus that of log(1 − e^−s) over anomalous cells or
    bags, with s the mean of A over a bag; `nominal` (M, D) are whitened features of good parts."""
    assert description.head is not None
    generator = generator_of(seed, "head")
    nominal = torch.cat([nominal, cells.nominal])
    count = ANOMALOUS if cells.anomalous.shape[1] == 1 else BAGS
    head = description.head.train().requires_grad_(True)
    head.reset(generator)
    optimiser = torch.optim.AdamW(head.parameters(), 1e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=STEPS)
    for _ in range(STEPS):
        good = nominal[torch.randint(len(nominal), (NOMINAL,), generator=generator)]
        bad = cells.anomalous[torch.multinomial(cells.weight, count, replacement=True, generator=generator)]
        z = torch.cat([good, bad.flatten(0, 1)])
        z = z + NOISE * torch.randn(z.shape, generator=generator)
        A = objectives.pseudo_huber(head(z)).flatten()
        loss = A[:NOMINAL].mean() - objectives.log1mexp(A[NOMINAL:].view(count, -1).mean(1)).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    head.eval().requires_grad_(False)
