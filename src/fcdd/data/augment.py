"""Batched augmentation. Every image of a batch draws its own parameters; no Python loop runs over images.

Images are float32 (N, C, H, W) in [0, 1]; masks are uint8 (N, 1, H, W) of 0 and 1 and move with their images.
Random numbers come from the generator that is passed in (a CPU one), so equal states give equal results.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

LUMA = (0.299, 0.587, 0.114)
RGB_TO_YIQ = torch.tensor([LUMA, (0.596, -0.274, -0.322), (0.211, -0.523, 0.312)])
YIQ_TO_RGB = torch.linalg.inv(RGB_TO_YIQ)

Augmentation = Callable[[Tensor, Tensor | None, int, Generator], tuple[Tensor, Tensor | None]]


def _uniform(n: int, generator: Generator, like: Tensor) -> Tensor:
    """n draws from [0, 1), shaped (n, 1, 1, 1), on the device of `like`."""
    return torch.rand(n, 1, 1, 1, generator=generator).to(like.device)


def random_crop(
    images: Tensor, size: int, generator: Generator, padding: int = 0, masks: Tensor | None = None
) -> tuple[Tensor, Tensor | None]:
    """Zero-pad by `padding` on every side, then cut a window of `size`² at a uniform position of its own per image."""
    n, _, h, w = images.shape
    rows, columns = h + 2 * padding - size, w + 2 * padding - size
    if rows < 0 or columns < 0:
        raise ValueError(f"cannot crop {size}×{size} out of {h}×{w} with padding {padding}")
    top = torch.randint(rows + 1, (n,), generator=generator).to(images.device)
    left = torch.randint(columns + 1, (n,), generator=generator).to(images.device)
    each = torch.arange(n, device=images.device)

    def cut(x: Tensor) -> Tensor:
        windows = F.pad(x, (padding,) * 4).unfold(2, size, 1).unfold(3, size, 1)  # a view: (N, C, rows, columns, s, s)
        return windows[each, :, top, left]

    return cut(images), None if masks is None else cut(masks)


def random_flip(images: Tensor, generator: Generator, masks: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
    """Mirror left and right, each image with probability ½."""
    flipped = _uniform(len(images), generator, images) < 0.5
    images = torch.where(flipped, images.flip(3), images)
    return images, None if masks is None else torch.where(flipped, masks.flip(3), masks)


def to_size(images: Tensor, size: int, mode: Literal["crop", "resize"] = "resize") -> Tensor:
    """Images at size × size, without chance: the central window, or an antialiased bilinear resize."""
    h, w = images.shape[-2:]
    if (h, w) == (size, size):
        return images
    if mode == "resize":
        return F.interpolate(images, (size, size), mode="bilinear", antialias=True)
    if h < size or w < size:
        raise ValueError(f"cannot crop {size}×{size} out of {h}×{w}")
    top, left = (h - size) // 2, (w - size) // 2
    return images[..., top : top + size, left : left + size]


def _resize(images: Tensor, size: int, masks: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """`to_size` by resize with masks, which follow by nearest neighbour so that they stay 0 or 1."""
    return to_size(images, size), None if masks is None else F.interpolate(masks, (size, size), mode="nearest-exact")


def crop_or_resize(
    images: Tensor, size: int, generator: Generator, masks: Tensor | None = None
) -> tuple[Tensor, Tensor | None]:
    """Each image is either randomly cropped or resized to `size`, with probability ½ each."""
    crop = _uniform(len(images), generator, images).flatten() < 0.5
    moved = images.new_empty(*images.shape[:2], size, size)
    moved_masks = None if masks is None else masks.new_empty(len(masks), 1, size, size)
    for chosen, way in ((crop, partial(random_crop, generator=generator)), (~crop, _resize)):
        part, part_masks = way(images[chosen], size=size, masks=None if masks is None else masks[chosen])
        moved[chosen] = part
        if moved_masks is not None and part_masks is not None:
            moved_masks[chosen] = part_masks
    return moved, moved_masks


def color_jitter(
    images: Tensor,
    brightness: float | Tensor,
    contrast: float | Tensor,
    saturation: float | Tensor,
    hue: float | Tensor,
    generator: Generator,
) -> Tensor:
    """Brightness, contrast, saturation and hue, always in this order, each clamped to [0, 1].

    A strength b (a number, or a tensor (N, 1, 1, 1) of one per image) gives factors f uniform in [max(0, 1 − b),
    1 + b]: brightness f·x; contrast f·x + (1 − f)·mean luma of the image; saturation f·x + (1 − f)·luma of the pixel.
    Hue h turns the chroma plane of YIQ by 2π·u with u uniform in [−h, h]: luma stays, unlike in HSV. Images without
    three channels skip the last two.
    """
    n, c = images.shape[:2]

    def factor(strength: float | Tensor) -> Tensor:
        strength = torch.as_tensor(strength, dtype=images.dtype, device=images.device)
        low = (1 - strength).clamp(min=0)
        return low + (1 + strength - low) * _uniform(n, generator, images)

    def luma(x: Tensor) -> Tensor:
        return torch.einsum("nchw,c->nhw", x, x.new_tensor(LUMA)).unsqueeze(1) if c == 3 else x

    images = (images * factor(brightness)).clamp(0, 1)
    images = luma(images).mean((1, 2, 3), keepdim=True).lerp(images, factor(contrast)).clamp(0, 1)
    if c != 3:
        return images
    images = luma(images).lerp(images, factor(saturation)).clamp(0, 1)
    angle = 2 * math.pi * hue * (2 * _uniform(n, generator, images) - 1)
    return _turn_hue(images, angle.flatten()).clamp(0, 1)


def _turn_hue(images: Tensor, angle: Tensor) -> Tensor:
    """RGB → YIQ, rotate (I, Q) by angle (N,), → RGB: one 3×3 matrix per image."""
    turn = torch.eye(3, dtype=images.dtype, device=images.device).repeat(len(images), 1, 1)
    turn[:, 1, 1] = turn[:, 2, 2] = angle.cos()
    turn[:, 2, 1] = angle.sin()
    turn[:, 1, 2] = -turn[:, 2, 1]
    matrix = YIQ_TO_RGB.to(images) @ turn @ RGB_TO_YIQ.to(images)
    return torch.bmm(matrix, images.flatten(2)).view_as(images)


def gaussian_noise(images: Tensor, std: float | Tensor, generator: Generator) -> Tensor:
    """x + std·ε, ε ~ N(0, 1) per value. Not clamped: clamping would brighten black and darken white on average."""
    return images + std * torch.randn(images.shape, generator=generator).to(images.device)


def noise_by_std(images: Tensor, generator: Generator, scale: float = 0.1, probability: float = 0.5) -> Tensor:
    """Gaussian noise of `scale` times the image's own standard deviation, on each image with `probability`."""
    chosen = _uniform(len(images), generator, images).flatten() < probability
    noisy = images.clone()
    if not chosen.any():
        return noisy
    noisy[chosen] = gaussian_noise(images[chosen], scale * images[chosen].std((1, 2, 3), keepdim=True), generator)
    return noisy


def mvtec_jitter(images: Tensor, generator: Generator, brightness: float = 0.0005) -> Tensor:
    """The jitter of MVTec: each image with all four strengths 0.04, or with 0.0005, with probability ½ each.

    `brightness` is the weak strength of that alone: the authors' code has 0.005 there.
    """
    strong = _uniform(len(images), generator, images) < 0.5
    first, rest = torch.where(strong, 0.04, brightness), torch.where(strong, 0.04, 0.0005)
    return color_jitter(images, first, rest, rest, rest, generator)


def _fmnist(images: Tensor, masks: Tensor | None, size: int, generator: Generator) -> tuple[Tensor, Tensor | None]:
    images, masks = random_crop(images, size, generator, padding=2, masks=masks)
    return random_flip(images, generator, masks)


def _cifar(images: Tensor, masks: Tensor | None, size: int, generator: Generator) -> tuple[Tensor, Tensor | None]:
    images = color_jitter(images, 0.01, 0.01, 0.01, 0.01, generator)
    images, masks = random_crop(images, size, generator, padding=4, masks=masks)
    images, masks = random_flip(images, generator, masks)
    return gaussian_noise(images, 0.001, generator), masks


def _imagenet(images: Tensor, masks: Tensor | None, size: int, generator: Generator) -> tuple[Tensor, Tensor | None]:
    images = color_jitter(images, 0.01, 0.01, 0.01, 0.01, generator)
    images, masks = random_flip(images, generator, masks)
    images, masks = random_crop(images, size, generator, masks=masks)
    return gaussian_noise(images, 0.001, generator), masks


def _voc(images: Tensor, masks: Tensor | None, size: int, generator: Generator) -> tuple[Tensor, Tensor | None]:
    images, masks = _resize(images, size, masks)
    images = color_jitter(images, 0.01, 0.01, 0.01, 0.01, generator)
    images, masks = random_flip(images, generator, masks)
    return gaussian_noise(images, 0.001, generator), masks


def _mvtec_crop(images: Tensor, masks: Tensor | None, size: int, generator: Generator) -> tuple[Tensor, Tensor | None]:
    """What the paper says of MVTec: always a random crop."""
    images, masks = random_crop(images, size, generator, masks=masks)
    return noise_by_std(mvtec_jitter(images, generator), generator), masks


def _mvtec(images: Tensor, masks: Tensor | None, size: int, generator: Generator) -> tuple[Tensor, Tensor | None]:
    """What the authors' code does with MVTec."""
    images, masks = crop_or_resize(images, size, generator, masks)
    return noise_by_std(mvtec_jitter(images, generator, brightness=0.005), generator), masks


def _none(images: Tensor, masks: Tensor | None, size: int, _: Generator) -> tuple[Tensor, Tensor | None]:
    return _resize(images, size, masks)


# Training pipelines by the name that recipes use: (images, masks or None, size, generator) → (images, masks or None).
AUGMENTATIONS: dict[str, Augmentation] = {
    "fmnist": _fmnist,
    "cifar": _cifar,
    "imagenet": _imagenet,
    "voc": _voc,
    "mvtec-crop": _mvtec_crop,
    "mvtec": _mvtec,
    "none": _none,
}

# What the same recipes do to test images, where nothing is left to chance: (images, size) → images.
TEST_TRANSFORMS: dict[str, Callable[[Tensor, int], Tensor]] = {
    name: partial(to_size, mode="crop" if name == "imagenet" else "resize") for name in AUGMENTATIONS
}
