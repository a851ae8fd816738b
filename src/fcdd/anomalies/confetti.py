"""Confetti noise: the paper's synthetic anomalies for unsupervised MVTec-AD, as the authors draw them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from fcdd.anomalies.drawing import finish, uniform
from fcdd.anomalies.synthetic import KINDS


def confetti(images: Tensor, generator: Generator, *, both_signs: bool = False) -> tuple[Tensor, Tensor]:
    """Blurred rotated squares, added to the image: the authors' anomalies for unsupervised MVTec.

    At 224 px: squares of 8–54 px a side, turned by up to ±45°; centres with probability 1.8e-5 a pixel for coloured
    squares (an offset per channel, uniform in −256…0 grey levels) and 1.2e-5 for dark ones (−255), at least one of
    each kind an image. Within a kind later squares cover earlier ones; the two layers are summed, blurred by a
    25 px Gaussian of σ 5, added and clamped. At other sizes, with s = min(H, W) / 224: sides, kernel and σ times s,
    probabilities over s², so that the image is the same in another resolution.

    `both_signs` negates each square with probability ½. An image that would not change gets the negated layer.
    """
    noise = _confetti_noise(images.shape, both_signs, generator).to(images.device)
    output, masks = finish(images, (images + noise).clamp(0, 1))
    dull = masks.amax((1, 2, 3)) == 0
    if dull.any():
        output[dull], masks[dull] = finish(images[dull], (images[dull] - noise[dull]).clamp(0, 1))
    return output, masks


@dataclass(frozen=True)
class _Squares:
    """M squares: image, kind (0 coloured, 1 dark), centre, half side and angle, each (M, 1, 1); offset (M, C)."""

    image: Tensor
    kind: Tensor
    row: Tensor
    column: Tensor
    half: Tensor
    angle: Tensor
    offset: Tensor


def _draw_squares(shape: torch.Size, both_signs: bool, generator: Generator) -> _Squares:
    """Counts are binomial over the pixels; two centres on one pixel (1 in 10⁵) are not excluded."""
    n, c, h, w = shape
    s = min(h, w) / 224
    probability = torch.tensor([1.8e-5, 1.2e-5]).div(s**2).clamp(max=1).repeat(n)  # coloured, dark
    counts = torch.binomial(torch.full((2 * n,), float(h * w)), probability, generator=generator).clamp(min=1)
    which = torch.arange(2 * n).repeat_interleave(counts.long()).view(-1, 1, 1)
    m = len(which)
    row, column = (torch.randint(side, (m, 1, 1), generator=generator) for side in (h, w))
    half = uniform((m, 1, 1), 8 * s, 54 * s, generator).clamp(min=1) / 2
    angle = uniform((m, 1, 1), -math.pi / 4, math.pi / 4, generator)
    offset = torch.where(which.view(-1, 1) % 2 == 1, -1.0, uniform((m, c), -256 / 255, 0, generator))
    if both_signs:
        offset = offset * (1 - 2 * torch.randint(2, (m, 1), generator=generator))
    return _Squares(which // 2, which % 2, row, column, half, angle, offset)


def _confetti_noise(shape: torch.Size, both_signs: bool, generator: Generator) -> Tensor:
    """What confetti adds to images of this shape: every square is drawn and blurred in a small window of its own."""
    n, c, h, w = shape
    s = min(h, w) / 224
    q = _draw_squares(shape, both_signs, generator)
    radius, reach = max(1, round(12 * s)), math.ceil(27 * s * math.sqrt(2))
    pad = radius + reach  # a margin that lets every window lie on the canvas
    height, width = h + 2 * pad, w + 2 * pad

    def place(layer: Tensor, reach: int) -> Tensor:
        """Flat canvas positions of the window of each square, (M, 2·reach + 1, 2·reach + 1)."""
        step = torch.arange(-reach, reach + 1)
        return ((layer * height + q.row + pad + step[:, None]) * width + q.column + pad) + step

    x = torch.arange(-reach, reach + 1)
    y = x[:, None]
    u, v = x * q.angle.cos() + y * q.angle.sin(), y * q.angle.cos() - x * q.angle.sin()
    inside = torch.maximum(u.abs(), v.abs()) <= q.half
    index, order = place(q.image * 2 + q.kind, reach), torch.arange(len(q.half), dtype=torch.int32)
    order = order.view(-1, 1, 1).expand_as(inside)
    top = torch.zeros(2 * n * height * width, dtype=torch.int32)
    top.scatter_reduce_(0, index[inside], order[inside], "amax")
    shown = _blur((inside & (top[index] == order)).float(), radius, 5 * s)
    channel = torch.arange(c).view(1, c, 1, 1)
    index = place(q.image * c, pad)[:, None] + channel * (height * width)
    values = q.offset[:, :, None, None] * shown[:, None]
    canvas = torch.zeros(n * c * height * width).scatter_add_(0, index.flatten(), values.flatten())
    return canvas.view(n, c, height, width)[:, :, pad : pad + h, pad : pad + w]


def _blur(windows: Tensor, radius: int, sigma: float) -> Tensor:
    """Separable Gaussian of 2·radius + 1 taps, zero outside: windows (M, k, k) → (M, k + 2·radius, k + 2·radius)."""
    k = windows.shape[-1]
    lag = torch.arange(k + 2 * radius)[:, None] - torch.arange(k) - radius
    taps = torch.exp(-0.5 * (torch.arange(-radius, radius + 1) / sigma) ** 2)
    band = torch.exp(-0.5 * (lag / sigma) ** 2) * (lag.abs() <= radius) / taps.sum()
    return band @ windows @ band.T


@KINDS.register("confetti")
def _kind(
    images: Tensor, generator: Generator, foreground: Tensor | None, source: Tensor | None
) -> tuple[Tensor, Tensor]:
    return confetti(images, generator, both_signs=True)
