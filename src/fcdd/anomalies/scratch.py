"""Scratches: thin wavy lines."""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor

from fcdd.anomalies.drawing import coin, composite, frame, log_uniform, uniform
from fcdd.anomalies.synthetic import KINDS


@KINDS.register("scratch")
def scratch(
    images: Tensor, generator: Generator, foreground: Tensor | None = None, source: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """One to three thin wavy lines, light or dark, 5–40 % of the side long and up to 1.5 % wide, tapering off."""
    n, _, h, w = images.shape
    side = min(h, w)
    u, v = frame(images, generator, foreground)
    alpha = torch.zeros(n, 1, h, w)
    for line in range(3):  # the first is always there and runs through the centre
        length = log_uniform(n, 0.05, 0.4, generator).mul(side).clamp(min=3)
        half_width = log_uniform(n, 0.002, 0.0075, generator).mul(side)
        wave = 2 * math.pi * uniform((n, 1, 1, 1), 0.2, 1.5, generator) / length
        swing = length * log_uniform(n, 0.01, 0.12, generator)
        phase = uniform((n, 1, 1, 1), 0, 2 * math.pi, generator)
        across = uniform((n, 1, 1, 1), -0.06, 0.06, generator) * side * min(line, 1)
        bend = swing * (torch.sin(wave * u + phase) - phase.sin()) + across
        slope = swing * wave * torch.cos(wave * u + phase)
        distance = (v - bend).abs() / (1 + slope * slope).sqrt()
        taper = ((length / 2 - u.abs()) / (0.2 * length)).clamp(0, 1)
        present = coin(n, 0.35, generator) | (line == 0)
        alpha = torch.maximum(alpha, (half_width + 0.5 - distance).clamp(0, 1) * taper * present)
    change = log_uniform(n, 0.06, 0.8, generator) * torch.where(coin(n, 0.5, generator), 1.0, -1.0)
    return composite(images, images + change.to(images.device), alpha)
