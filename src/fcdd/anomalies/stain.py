"""Stains: irregular blobs of colour or changed brightness."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from fcdd.anomalies.drawing import blob, coin, composite, frame, log_uniform, uniform
from fcdd.anomalies.synthetic import KINDS


@KINDS.register("stain")
def stain(
    images: Tensor, generator: Generator, foreground: Tensor | None = None, source: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """An irregular blob, 2–25 % of the side, of flat colour or changed brightness, 30–100 % opaque."""
    n, c, _, _ = images.shape
    u, v = frame(images, generator, foreground)
    alpha = blob(u, v, generator) * uniform((n, 1, 1, 1), 0.3, 1, generator)
    grey, vivid = uniform((n, 1, 1, 1), 0, 1, generator), uniform((n, c, 1, 1), 0, 1, generator)
    colour = torch.lerp(grey, vivid, uniform((n, 1, 1, 1), 0, 1, generator)).to(images.device)
    change = log_uniform(n, 0.1, 0.8, generator) * torch.where(coin(n, 0.5, generator), 1.0, -1.0)
    flat = coin(n, 0.5, generator).to(images.device)
    return composite(images, torch.where(flat, colour, images + change.to(images.device)), alpha)
