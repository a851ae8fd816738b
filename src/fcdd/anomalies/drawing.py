"""What synthetic defects are drawn with: chance, frames, blobs, pieces of texture, and how they change an image."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

GREY_LEVEL = 1 / 255
FAINTEST = 8 / 255  # peak change below which a defect is redrawn as a brightness change: nobody could learn it
SMALLEST, LARGEST = 0.02, 0.25  # diameters of defects, as fractions of the image side


def uniform(shape: tuple[int, ...], low: float, high: float, generator: Generator) -> Tensor:
    return low + (high - low) * torch.rand(shape, generator=generator)


def log_uniform(n: int, low: float, high: float, generator: Generator) -> Tensor:
    """(n, 1, 1, 1) draws whose logarithm is uniform, so that small and large are equally likely."""
    return uniform((n, 1, 1, 1), math.log(low), math.log(high), generator).exp()


def radius(n: int, side: int, generator: Generator) -> Tensor:
    """(n, 1, 1, 1) half sizes in pixels of defects 2–25 % of the side, uniform in the root, and at least 1.5."""
    root = uniform((n, 1, 1, 1), math.sqrt(SMALLEST), math.sqrt(LARGEST), generator)
    return (root.square() * side / 2).clamp(min=1.5)


def coin(n: int, probability: float, generator: Generator) -> Tensor:
    return torch.rand(n, 1, 1, 1, generator=generator) < probability


def finish(images: Tensor, output: Tensor) -> tuple[Tensor, Tensor]:
    """Take back what changed by less than a grey level; the mask is what remains."""
    visible = ((output - images).abs_() >= GREY_LEVEL).any(1, keepdim=True)
    return torch.where(visible, output, images), visible.to(torch.uint8)


def composite(images: Tensor, fill: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
    """x + alpha·(fill − x) with opacity alpha (N, 1, H, W), somewhere > 0 in every image.

    Where that would hardly show (flat texture pasted on itself, white on white), the shape brightens dark pixels and
    darkens light ones by a quarter instead.
    """
    alpha = alpha.to(images.device)
    output = torch.lerp(images, fill.to(images.device), alpha).clamp(0, 1)
    dull = (output - images).abs_().amax((1, 2, 3)) < FAINTEST
    if dull.any():
        dim, shape = images[dull], alpha[dull] / alpha[dull].amax((1, 2, 3), keepdim=True)
        output[dull] = dim + 0.25 * shape * torch.where(dim < 0.5, 1.0, -1.0)
    return finish(images, output)


def frame(images: Tensor, generator: Generator, foreground: Tensor | None) -> tuple[Tensor, Tensor]:
    """Pixel coordinates (u, v), each (N, 1, H, W), about a random centre, turned by a random angle.

    The centre is a pixel of the image, or of the foreground mask (N, 1, H, W) where that has any.
    """
    n, _, h, w = images.shape
    if foreground is None:
        row, column = (torch.randint(side, (n, 1, 1, 1), generator=generator) for side in (h, w))
    else:
        weight = foreground.flatten(1).float().cpu()
        weight = torch.where(weight.sum(1, keepdim=True) > 0, weight, 1.0)
        centre = torch.multinomial(weight, 1, generator=generator).view(n, 1, 1, 1)
        row, column = centre // w, centre % w
    angle = uniform((n, 1, 1, 1), 0, 2 * math.pi, generator)
    y, x = torch.arange(h).view(1, 1, h, 1) - row, torch.arange(w).view(1, 1, 1, w) - column
    return x * angle.cos() + y * angle.sin(), y * angle.cos() - x * angle.sin()


def blob(u: Tensor, v: Tensor, generator: Generator) -> Tensor:
    """Coverage (N, 1, H, W) in [0, 1] of an irregular blob about the origin of the frame, positive at the origin.

    An ellipse of random aspect, roughened by smooth noise: 1 − ρ² + 0.8·noise > 0, with an edge between half a pixel
    and half the blob wide.
    """
    n, _, h, w = u.shape
    long = radius(n, min(h, w), generator) / 1.15  # the noise widens it
    short = (long / log_uniform(n, 1, 2.5, generator)).clamp(min=1)
    edge = (short * log_uniform(n, 0.05, 0.5, generator)).clamp(min=0.5)
    p, q = u / long, v / short
    grid = torch.randn(n, 1, 5, 5, generator=generator)
    grid = F.interpolate(grid, (28, 28), mode="bicubic").clamp(-1, 1)
    noise = F.grid_sample(grid, torch.cat([p, q], 1).permute(0, 2, 3, 1) / 1.4, align_corners=False)
    return ((1 - p * p - q * q + 0.8 * noise) * short / edge).clamp(0, 1)


def piece(source: Tensor, index: Tensor, u: Tensor, v: Tensor, zoom: Tensor | float, generator: Generator) -> Tensor:
    """source[index] (N, C, H, W) about a random place of it, seen in the frame (u, v); mirrored beyond its borders."""
    n, (h, w) = len(index), source.shape[-2:]
    scale = zoom * min(h, w) / min(u.shape[-2:])
    x = uniform((n, 1, 1, 1), 0, w, generator) + u * scale
    y = uniform((n, 1, 1, 1), 0, h, generator) + v * scale
    grid = torch.cat([2 * x / w - 1, 2 * y / h - 1], 1).permute(0, 2, 3, 1)
    return F.grid_sample(source[index].cpu(), grid, padding_mode="reflection", align_corners=False)
