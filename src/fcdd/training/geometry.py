"""The transformations that GEO's classifier has to tell apart: rotations × reflections × translations."""

from __future__ import annotations

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


def transform_each(images: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
    """Each image by a transformation of its own, drawn uniformly: (N, C, S, S) and the indices (N,)."""
    drawn = torch.randint(COUNT, (len(images),), generator=generator)
    moved = torch.empty_like(images)
    for index in drawn.unique().tolist():
        moved[drawn == index] = transform(images[drawn == index], index)
    return moved, drawn
