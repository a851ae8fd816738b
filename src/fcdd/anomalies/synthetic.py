"""Synthetic anomalies by name: a new kind is a new file in this package.

Every kind takes images (N, C, H, W) float32 in [0, 1] and a CPU generator, and returns new images and their masks
(N, 1, H, W) uint8, 1 exactly where any channel differs from the input. Changes below one grey level (1/255) are not
made at all, so a mask holds what a camera could record, and no mask is empty. Sizes are fractions of the image side
min(H, W), so every kind works at every resolution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Generator, Tensor

from fcdd.registry import Registry

# (images, generator, foreground or None, source or None) → (images, masks), see `mixture`.
Kind = Callable[[Tensor, Generator, Tensor | None, Tensor | None], tuple[Tensor, Tensor]]
KINDS: Registry[Kind] = Registry("synthetic defect", "fcdd.anomalies")
LOCAL = ("scratch", "stain", "cutpaste", "texture")  # defects on a part
EVERY = (*LOCAL, *("confetti",) * len(LOCAL))  # these and the paper's confetti, half and half


def mixture(
    images: Tensor,
    generator: Generator,
    kinds: Sequence[str] = LOCAL,
    foreground: Tensor | None = None,
    source: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One kind of defect for each image, drawn uniformly from `kinds` (a kind named twice comes twice as often).

    `foreground` (N, 1, H, W) puts the centre of every defect but confetti on the part. `source` (M, C, h, w) is where
    textures and half of the pasted patches come from: the batch itself, or an auxiliary one.
    """
    output, masks = images.clone(), images.new_zeros(images[:, :1].shape, dtype=torch.uint8)
    choice = torch.randint(len(kinds), (len(images),), generator=generator)
    for k, kind in enumerate(kinds):
        rows = (choice == k).nonzero().flatten()
        if len(rows) == 0:
            continue
        part = None if foreground is None else foreground[rows]
        output[rows], masks[rows] = KINDS[kind](images[rows], generator, part, images if source is None else source)
    return output, masks
