"""Auxiliary corpora for Outlier Exposure, by name, in the channels and size of the problem they serve."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from fcdd import images
from fcdd.data import Source, cifar, fashion_mnist, imagenet
from fcdd.data.sources import Images
from fcdd.errors import DataError

NAMES = ("cifar100", "emnist", "imagenet", "imagenet22k", "folder:PATH")
_CHUNK = 1024  # images at a time in float, which bounds memory


def exposure(
    name: str,
    root: Path | None,
    *,
    channels: int,
    size: int,
    generator: torch.Generator,
    limit: int | None = None,
    exclude: Collection[str] = (),
) -> tuple[Source, str]:
    """The corpus `name` below `root` as a `Source` of uint8 (`channels`, `size`, `size`), and its provenance.

    cifar100 and emnist come as one tensor in memory, the others as files decoded on demand (shorter side to `size`,
    centre kept). `limit` draws that many distinct images. `exclude` are WordNet ids that imagenet and imagenet22k
    leave out besides the paper's classes.

    Raises:
        DataError: an unknown name, a corpus that is not there, or fewer images than `limit`.
    """
    if name.startswith("folder:"):
        return _files(images.find(name.removeprefix("folder:")), name, channels, size, limit, generator)
    if name not in NAMES:
        raise DataError(f"No corpus {name!r} for Outlier Exposure; choose one of: {', '.join(NAMES)}.")
    if root is None:
        raise DataError(f"{name}: say in which folder the corpus lies.")
    if name in ("imagenet", "imagenet22k"):
        list_files = imagenet.train_files if name == "imagenet" else imagenet.exposure_files
        paths, provenance = list_files(root, exclude)
        return _files(paths, provenance, channels, size, limit, generator)
    corpus, provenance = cifar.read_cifar100(root) if name == "cifar100" else fashion_mnist.read_emnist(root)
    chosen, drawn = _draw(len(corpus), provenance, limit, generator)
    return conform(corpus[chosen], channels, size), provenance + drawn


def conform(corpus: Tensor, channels: int, size: int) -> Tensor:
    """uint8 (N, 1 or 3, H, W) → uint8 (N, channels, size, size).

    Colour becomes gray by ITU-R 601, 0.299 R + 0.587 G + 0.114 B; gray is repeated for colour; bilinear, antialiased.
    """
    if channels not in (1, 3):
        raise ValueError(f"channels must be 1 or 3, not {channels}")
    return torch.cat([_conform(chunk, channels, size) for chunk in corpus.split(_CHUNK)])


def _conform(chunk: Tensor, channels: int, size: int) -> Tensor:
    levels = chunk.float()
    if channels == 1 and levels.shape[1] == 3:
        levels = torch.einsum("nchw,c->nhw", levels, torch.tensor([0.299, 0.587, 0.114]))[:, None]
    if levels.shape[2:] != (size, size):
        levels = F.interpolate(levels, (size, size), mode="bilinear", antialias=True, align_corners=False)
    return levels.round().clamp(0, 255).byte().repeat(1, channels // levels.shape[1], 1, 1)


def _files(
    paths: list[Path], provenance: str, channels: int, size: int, limit: int | None, generator: torch.Generator
) -> tuple[Source, str]:
    chosen, drawn = _draw(len(paths), provenance, limit, generator)
    return Images([paths[index] for index in chosen.tolist()], size, channels, fit="crop"), provenance + drawn


def _draw(count: int, name: str, limit: int | None, generator: torch.Generator) -> tuple[Tensor, str]:
    """Indices (n,) of all images or of `limit` distinct ones, and what to add to the provenance."""
    if limit is None and count:
        return torch.arange(count), ""
    if limit is None or not 1 <= limit <= count:
        raise DataError(f"{name}: has {count:,} images, {'at least 1' if limit is None else limit} asked for.")
    return torch.randperm(count, generator=generator)[:limit], f", {limit:,} drawn at random"
