"""Auxiliary corpora for Outlier Exposure, by name, in the channels and size of the problem they serve."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from fcdd import images
from fcdd.data import CORPORA, Source
from fcdd.data.sources import Images
from fcdd.errors import DataError
from fcdd.images import Fit

FOLDER = "folder:"  # begins the name of a corpus that is a folder of the user's
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
    fit: Fit = "crop",
) -> tuple[Source, str]:
    """The corpus `name` below `root` as a `Source` of uint8 (`channels`, `size`, `size`), and its provenance.

    `name` is one of `fcdd.data.CORPORA`, or folder:PATH for a folder of images. Corpora that fit in memory come as
    one tensor, the others as files decoded on demand, which `fit` brings to the size. `limit` draws that many
    distinct images. `exclude` are WordNet ids that corpora of ImageNet leave out besides the paper's classes.

    Raises:
        DataError: an unknown name, a corpus that is not there, or fewer images than `limit`.
    """
    corpus, provenance = _read(name, root, exclude)
    chosen, drawn = _draw(len(corpus), provenance, limit, generator)
    if isinstance(corpus, Tensor):
        return conform(corpus[chosen], channels, size), provenance + drawn
    return Images([corpus[index] for index in chosen.tolist()], size, channels, fit), provenance + drawn


def files(name: str, root: Path) -> list[Path]:
    """The files and folders that tell two states of the corpus `name` apart; none for synthetic anomalies."""
    if name.startswith(FOLDER):
        return images.find(name.removeprefix(FOLDER))
    patterns = CORPORA[name].files if name in CORPORA else ()
    return [path for pattern in patterns for path in root.glob(pattern)]


def _read(name: str, root: Path | None, exclude: Collection[str]) -> tuple[Tensor | list[Path], str]:
    if name.startswith(FOLDER):
        return images.find(name.removeprefix(FOLDER)), name
    if name not in CORPORA:
        known = ", ".join([*CORPORA, f"{FOLDER}PATH"])
        raise DataError(f"No corpus {name!r} for Outlier Exposure; choose one of: {known}.")
    if root is None:
        raise DataError(f"{name}: say in which folder the corpus lies.")
    return CORPORA[name].read(root, exclude)


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


def _draw(count: int, name: str, limit: int | None, generator: torch.Generator) -> tuple[Tensor, str]:
    """Indices (n,) of all images or of `limit` distinct ones, and what to add to the provenance."""
    if limit is None and count:
        return torch.arange(count), ""
    if limit is None or not 1 <= limit <= count:
        raise DataError(f"{name}: has {count:,} images, {'at least 1' if limit is None else limit} asked for.")
    return torch.randperm(count, generator=generator)[:limit], f", {limit:,} drawn at random"
