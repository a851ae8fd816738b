"""Pieces of a part pasted where they do not belong."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from fcdd.anomalies.drawing import coin, composite, frame, log_uniform, piece, radius
from fcdd.anomalies.synthetic import KINDS


@KINDS.register("cutpaste")
def cutpaste(
    images: Tensor, generator: Generator, foreground: Tensor | None = None, source: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """A feathered rectangle, 2–25 % of the side, cut elsewhere and pasted turned.

    Half of the patches come from the image itself, half from a random image of `source` (default: the batch).
    """
    n, _, h, w = images.shape
    source = images if source is None else source
    u, v = frame(images, generator, foreground)
    half = [radius(n, min(h, w), generator) for _ in range(2)]
    feather = (torch.minimum(*half) * log_uniform(n, 0.05, 0.6, generator)).clamp(min=0.5)
    alpha = (torch.minimum(half[0] - u.abs(), half[1] - v.abs()) / feather).clamp(0, 1)
    own = piece(images, torch.arange(n), u, v, 1, generator)
    other = piece(source, torch.randint(len(source), (n,), generator=generator), u, v, 1, generator)
    return composite(images, torch.where(coin(n, 0.5, generator), own, other), alpha)
