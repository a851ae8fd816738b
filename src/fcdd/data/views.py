"""Further views of an image: as another lamp would show it, and as the part would look turned a little."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Generator, Tensor


def relit(images: Tensor, generator: Generator) -> Tensor:
    """Images (N, 3, H, W) in 0…255 under another lamp: gamma, gain, colour cast and uneven light, each image its own,
    then rounded and clipped as a camera does.

    Rounding and clipping matter: whitened features notice the traces they leave, and without such views among the
    good ones a detector calls every brighter image a defect.
    """
    n = len(images)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator) * 2 - 1

    lit = 255 * (images / 255).clamp(0, 1) ** (1 + 0.1 * uniform(n, 1, 1, 1))
    lit = lit * (1 + 0.1 * uniform(n, 1, 1, 1)) * (1 + 0.05 * uniform(n, 3, 1, 1))
    uneven = torch.randn(n, 3, 12, 12, generator=generator)
    lit = lit + 1.5 * F.interpolate(uneven, size=lit.shape[2:], mode="bicubic", align_corners=False)
    lit = lit + 0.7 * torch.randn(lit.shape, generator=generator)
    return lit.round().clamp(0, 255)


def turned(images: Tensor, generator: Generator, degrees: float = 20.0, zoom: float = 0.1) -> Tensor:
    """Images (N, C, H, W), each turned by a multiple of 90°, perhaps mirrored, then turned, zoomed and moved a little.

    Masks move along as further channels.
    """
    quarter = int(torch.randint(4, (1,), generator=generator))
    if images.shape[2] != images.shape[3]:
        quarter -= quarter % 2
    images = torch.rot90(images, quarter, (2, 3))
    if torch.rand(1, generator=generator) < 0.5:
        images = images.flip(3)
    n = len(images)
    angle = (torch.rand(n, generator=generator) * 2 - 1) * math.radians(degrees)
    scale = 1 + (torch.rand(n, generator=generator) * 2 - 1) * zoom
    move = (torch.rand(n, 2, generator=generator) * 2 - 1) * 0.03
    first = torch.stack([scale * angle.cos(), -scale * angle.sin(), move[:, 0]], 1)
    second = torch.stack([scale * angle.sin(), scale * angle.cos(), move[:, 1]], 1)
    grid = F.affine_grid(torch.stack([first, second], 1), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, mode="bilinear", padding_mode="reflection", align_corners=False)
