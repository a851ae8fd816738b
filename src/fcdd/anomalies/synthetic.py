"""Synthetic anomalies: confetti as the authors draw it, and local defects for training an inspection detector.

Every function takes images (N, C, H, W) float32 in [0, 1] and a CPU generator, and returns new images and their
masks (N, 1, H, W) uint8, 1 exactly where any channel differs from the input. Changes below one grey level (1/255) are
not made at all, so a mask holds what a camera could record, and no mask is empty. Sizes are fractions of the
image side min(H, W), so every function works at every resolution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

GREY_LEVEL = 1 / 255
FAINTEST = 8 / 255  # peak change below which a defect is redrawn as a brightness change: nobody could learn it
SMALLEST, LARGEST = 0.02, 0.25  # diameters of defects, as fractions of the image side


def confetti(images: Tensor, generator: Generator, *, both_signs: bool = False) -> tuple[Tensor, Tensor]:
    """Blurred rotated squares, added to the image: the authors' anomalies for unsupervised MVTec.

    At 224 px: squares of 8–54 px a side, turned by up to ±45°; centres with probability 1.8e-5 a pixel for coloured
    squares (an offset per channel, uniform in −256…0 grey levels) and 1.2e-5 for dark ones (−255), at least one of
    each kind an image. Within a kind later squares cover earlier ones; the two layers are summed, blurred by a
    25 px Gaussian of σ 5, added and clamped. At other sizes, with s = min(H, W) / 224: sides, kernel and σ times s,
    probabilities over s², so that the picture is the same in another resolution.

    `both_signs` negates each square with probability ½. An image that would not change gets the negated layer.
    """
    noise = _confetti_noise(images.shape, both_signs, generator).to(images.device)
    output, masks = _finish(images, (images + noise).clamp(0, 1))
    dull = masks.amax((1, 2, 3)) == 0
    if dull.any():
        output[dull], masks[dull] = _finish(images[dull], (images[dull] - noise[dull]).clamp(0, 1))
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
    half = _uniform((m, 1, 1), 8 * s, 54 * s, generator).clamp(min=1) / 2
    angle = _uniform((m, 1, 1), -math.pi / 4, math.pi / 4, generator)
    offset = torch.where(which.view(-1, 1) % 2 == 1, -1.0, _uniform((m, c), -256 / 255, 0, generator))
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


def _uniform(shape: tuple[int, ...], low: float, high: float, generator: Generator) -> Tensor:
    return low + (high - low) * torch.rand(shape, generator=generator)


def _log_uniform(n: int, low: float, high: float, generator: Generator) -> Tensor:
    """(n, 1, 1, 1) draws whose logarithm is uniform, so that small and large are equally likely."""
    return _uniform((n, 1, 1, 1), math.log(low), math.log(high), generator).exp()


def _radius(n: int, side: int, generator: Generator) -> Tensor:
    """(n, 1, 1, 1) half sizes in pixels of defects 2–25 % of the side, uniform in the root, and at least 1.5."""
    root = _uniform((n, 1, 1, 1), math.sqrt(SMALLEST), math.sqrt(LARGEST), generator)
    return (root.square() * side / 2).clamp(min=1.5)


def _coin(n: int, probability: float, generator: Generator) -> Tensor:
    return torch.rand(n, 1, 1, 1, generator=generator) < probability


def _finish(images: Tensor, output: Tensor) -> tuple[Tensor, Tensor]:
    """Take back what changed by less than a grey level; the mask is what remains."""
    visible = ((output - images).abs_() >= GREY_LEVEL).any(1, keepdim=True)
    return torch.where(visible, output, images), visible.to(torch.uint8)


def _composite(images: Tensor, fill: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
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
    return _finish(images, output)


def _frame(images: Tensor, generator: Generator, foreground: Tensor | None) -> tuple[Tensor, Tensor]:
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
    angle = _uniform((n, 1, 1, 1), 0, 2 * math.pi, generator)
    y, x = torch.arange(h).view(1, 1, h, 1) - row, torch.arange(w).view(1, 1, 1, w) - column
    return x * angle.cos() + y * angle.sin(), y * angle.cos() - x * angle.sin()


def _blob(u: Tensor, v: Tensor, generator: Generator) -> Tensor:
    """Coverage (N, 1, H, W) in [0, 1] of an irregular blob about the origin of the frame, positive at the origin.

    An ellipse of random aspect, roughened by smooth noise: 1 − ρ² + 0.8·noise > 0, with an edge between half a pixel
    and half the blob wide.
    """
    n, _, h, w = u.shape
    long = _radius(n, min(h, w), generator) / 1.15  # the noise widens it
    short = (long / _log_uniform(n, 1, 2.5, generator)).clamp(min=1)
    edge = (short * _log_uniform(n, 0.05, 0.5, generator)).clamp(min=0.5)
    p, q = u / long, v / short
    grid = torch.randn(n, 1, 5, 5, generator=generator)
    grid = F.interpolate(grid, (28, 28), mode="bicubic").clamp(-1, 1)
    noise = F.grid_sample(grid, torch.cat([p, q], 1).permute(0, 2, 3, 1) / 1.4, align_corners=False)
    return ((1 - p * p - q * q + 0.8 * noise) * short / edge).clamp(0, 1)


def _texture(source: Tensor, index: Tensor, u: Tensor, v: Tensor, zoom: Tensor | float, generator: Generator) -> Tensor:
    """source[index] (N, C, H, W) about a random place of it, seen in the frame (u, v); mirrored beyond its borders."""
    n, (h, w) = len(index), source.shape[-2:]
    scale = zoom * min(h, w) / min(u.shape[-2:])
    x = _uniform((n, 1, 1, 1), 0, w, generator) + u * scale
    y = _uniform((n, 1, 1, 1), 0, h, generator) + v * scale
    grid = torch.cat([2 * x / w - 1, 2 * y / h - 1], 1).permute(0, 2, 3, 1)
    return F.grid_sample(source[index].cpu(), grid, padding_mode="reflection", align_corners=False)


def scratch(images: Tensor, generator: Generator, foreground: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """One to three thin wavy lines, light or dark, 5–40 % of the side long and up to 1.5 % wide, tapering off."""
    n, _, h, w = images.shape
    side = min(h, w)
    u, v = _frame(images, generator, foreground)
    alpha = torch.zeros(n, 1, h, w)
    for line in range(3):  # the first is always there and runs through the centre
        length = _log_uniform(n, 0.05, 0.4, generator).mul(side).clamp(min=3)
        half_width = _log_uniform(n, 0.002, 0.0075, generator).mul(side)
        wave = 2 * math.pi * _uniform((n, 1, 1, 1), 0.2, 1.5, generator) / length
        swing = length * _log_uniform(n, 0.01, 0.12, generator)
        phase = _uniform((n, 1, 1, 1), 0, 2 * math.pi, generator)
        across = _uniform((n, 1, 1, 1), -0.06, 0.06, generator) * side * min(line, 1)
        bend = swing * (torch.sin(wave * u + phase) - phase.sin()) + across
        slope = swing * wave * torch.cos(wave * u + phase)
        distance = (v - bend).abs() / (1 + slope * slope).sqrt()
        taper = ((length / 2 - u.abs()) / (0.2 * length)).clamp(0, 1)
        present = _coin(n, 0.35, generator) | (line == 0)
        alpha = torch.maximum(alpha, (half_width + 0.5 - distance).clamp(0, 1) * taper * present)
    change = _log_uniform(n, 0.06, 0.8, generator) * torch.where(_coin(n, 0.5, generator), 1.0, -1.0)
    return _composite(images, images + change.to(images.device), alpha)


def stain(images: Tensor, generator: Generator, foreground: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """An irregular blob, 2–25 % of the side, of flat colour or changed brightness, 30–100 % opaque."""
    n, c, _, _ = images.shape
    u, v = _frame(images, generator, foreground)
    alpha = _blob(u, v, generator) * _uniform((n, 1, 1, 1), 0.3, 1, generator)
    grey, vivid = _uniform((n, 1, 1, 1), 0, 1, generator), _uniform((n, c, 1, 1), 0, 1, generator)
    colour = torch.lerp(grey, vivid, _uniform((n, 1, 1, 1), 0, 1, generator)).to(images.device)
    change = _log_uniform(n, 0.1, 0.8, generator) * torch.where(_coin(n, 0.5, generator), 1.0, -1.0)
    flat = _coin(n, 0.5, generator).to(images.device)
    return _composite(images, torch.where(flat, colour, images + change.to(images.device)), alpha)


def cutpaste(
    images: Tensor, generator: Generator, foreground: Tensor | None = None, source: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """A feathered rectangle, 2–25 % of the side, cut elsewhere and pasted turned.

    Half of the patches come from the image itself, half from a random image of `source` (default: the batch).
    """
    n, _, h, w = images.shape
    source = images if source is None else source
    u, v = _frame(images, generator, foreground)
    half = [_radius(n, min(h, w), generator) for _ in range(2)]
    feather = (torch.minimum(*half) * _log_uniform(n, 0.05, 0.6, generator)).clamp(min=0.5)
    alpha = (torch.minimum(half[0] - u.abs(), half[1] - v.abs()) / feather).clamp(0, 1)
    own = _texture(images, torch.arange(n), u, v, 1, generator)
    other = _texture(source, torch.randint(len(source), (n,), generator=generator), u, v, 1, generator)
    return _composite(images, torch.where(_coin(n, 0.5, generator), own, other), alpha)


def texture(
    images: Tensor, generator: Generator, foreground: Tensor | None = None, source: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """An irregular blob, 2–25 % of the side, filled with a piece of a random image of `source`, 30–100 % opaque.

    `source` (M, C, h, w) float32 in [0, 1] may have any size and number of images (default: the batch itself); the
    piece is turned, and magnified between ½ and 2 times.
    """
    n = len(images)
    source = images if source is None else source
    u, v = _frame(images, generator, foreground)
    alpha = _blob(u, v, generator) * _uniform((n, 1, 1, 1), 0.3, 1, generator)
    index = torch.randint(len(source), (n,), generator=generator)
    fill = _texture(source, index, u, v, _log_uniform(n, 0.5, 2, generator), generator)
    return _composite(images, fill, alpha)


# Every kind under one signature: (images, generator, foreground or None, source or None) → (images, masks).
Kind = Callable[[Tensor, Generator, Tensor | None, Tensor | None], tuple[Tensor, Tensor]]
KINDS: dict[str, Kind] = {
    "confetti": lambda images, generator, _foreground, _source: confetti(images, generator, both_signs=True),
    "scratch": lambda images, generator, foreground, _source: scratch(images, generator, foreground),
    "stain": lambda images, generator, foreground, _source: stain(images, generator, foreground),
    "cutpaste": cutpaste,
    "texture": texture,
}


def mixture(
    images: Tensor,
    generator: Generator,
    kinds: Sequence[str] = ("scratch", "stain", "cutpaste", "texture"),
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
