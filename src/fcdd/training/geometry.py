"""The transformations that GEO's and GEO+'s classifiers tell apart: turns, reflections, translations."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

# 4 quarter turns × 2 reflections × 3 translations: none, a quarter of the side to the right, or down. The other two
# directions come about by the turns and reflections, which follow.
COUNT = 24


def transform(images: Tensor, index: int) -> Tensor:
    """The `index`-th transformation of images (N, C, S, S); 0 is the identity. What moves in is mirrored."""
    turns, rest = divmod(index, 6)
    mirrored, shift = divmod(rest, 3)
    side = images.shape[-1]
    if shift == 1:
        images = F.pad(images, (side // 4, 0, 0, 0), mode="reflect")[..., :side]
    if shift == 2:
        images = F.pad(images, (0, 0, side // 4, 0), mode="reflect")[..., :side, :]
    if mirrored:
        images = images.flip(3)
    return torch.rot90(images, turns, (2, 3)).contiguous(memory_format=torch.channels_last)


# GEO+: a head for the turn, one for the shift across and one for the shift down; each shift is none, there or back.
HEADS = (4, 3, 3)
COMBINED = 36


def combined(images: Tensor, index: int) -> Tensor:
    """The `index`-th turn and shift of images (N, C, S, S); 0 is the identity. What moves in is mirrored."""
    turns, across, down = answers(index)
    images = _shifted(_shifted(images, across, 3), down, 2)
    return torch.rot90(images, turns, (2, 3)).contiguous(memory_format=torch.channels_last)


def answers(index: int) -> tuple[int, int, int]:
    """What the three heads should say of the `index`-th combination."""
    turns, rest = divmod(index, HEADS[1] * HEADS[2])
    return turns, *divmod(rest, HEADS[2])


def _shifted(images: Tensor, way: int, axis: int) -> Tensor:
    """Images moved along `axis` by a quarter of the side: not (0), forwards (1) or backwards (2)."""
    if way == 0:
        return images
    side = images.shape[axis]
    before, after = (side // 4, 0) if way == 1 else (0, side // 4)
    padding = (before, after, 0, 0) if axis == 3 else (0, 0, before, after)
    return F.pad(images, padding, mode="reflect").narrow(axis, after, side)


def transform_each(
    images: Tensor, generator: Generator, count: int = COUNT, by: Callable[[Tensor, int], Tensor] = transform
) -> tuple[Tensor, Tensor]:
    """Each image by one of `count` transformations, drawn uniformly: (N, C, S, S) and the indices (N,)."""
    drawn = torch.randint(count, (len(images),), generator=generator)
    moved = torch.empty_like(images)
    for index in drawn.unique().tolist():
        moved[drawn == index] = by(images[drawn == index], index)
    return moved, drawn
