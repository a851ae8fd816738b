"""Blobs of another image's texture."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from fcdd.anomalies.drawing import blob, composite, frame, log_uniform, piece, uniform
from fcdd.anomalies.synthetic import KINDS


@KINDS.register("texture")
def texture(
    images: Tensor, generator: Generator, foreground: Tensor | None = None, source: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """An irregular blob, 2–25 % of the side, filled with a piece of a random image of `source`, 30–100 % opaque.

    `source` (M, C, h, w) float32 in [0, 1] may have any size and number of images (default: the batch itself); the
    piece is turned, and magnified between ½ and 2 times.
    """
    n = len(images)
    source = images if source is None else source
    u, v = frame(images, generator, foreground)
    alpha = blob(u, v, generator) * uniform((n, 1, 1, 1), 0.3, 1, generator)
    index = torch.randint(len(source), (n,), generator=generator)
    fill = piece(source, index, u, v, log_uniform(n, 0.5, 2, generator), generator)
    return composite(images, fill, alpha)
