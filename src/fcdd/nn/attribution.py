"""Heatmaps of the methods that do not give one themselves: gradients, integrated gradients, reconstruction error.

A score is a function of images (N, C, H, W) to (N,), in which no image depends on another: a network in evaluation
mode is one, in training mode it is not.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from fcdd.nn import objectives
from fcdd.nn.fields import Field
from fcdd.nn.upsampling import upsample

Score = Callable[[Tensor], Tensor]
STEPS = 32  # of the path that gradients are integrated along


def gradient(score: Score, images: Tensor) -> tuple[Tensor, Tensor]:
    """Scores (N,) and ∂s/∂x (N, C, H, W), signed."""
    with torch.enable_grad():
        x = images.detach().clone().requires_grad_()
        scores = score(x)
        (slope,) = torch.autograd.grad(scores.sum(), x)
    return scores.detach(), slope


def integrated_gradients(
    score: Score, images: Tensor, baseline: Tensor | None = None, steps: int = STEPS
) -> tuple[Tensor, Tensor]:
    """Scores (N,) and (x − x₀) · ∫₀¹ ∂s/∂x(x₀ + t·(x − x₀)) dt (N, C, H, W), by the midpoint rule.

    They sum to s(x) − s(x₀) for each image (completeness). `baseline` x₀ defaults to zeros: after 'standard'
    preprocessing the mean colour, after 'lcn' the darkest value of the training set.
    """
    with torch.no_grad():
        scores = score(images)
    start = torch.zeros_like(images) if baseline is None else baseline
    total = torch.zeros_like(images)
    for step in range(steps):
        total += gradient(score, start + (step + 0.5) / steps * (images - start))[1]
    return scores, (images - start) * total / steps


def heat(attribution: Tensor) -> Tensor:
    """The paper's gradient heatmap: (N, C, H, W) → (N, 1, H, W), absolute values summed over the channels."""
    return attribution.abs().sum(1, keepdim=True)


def reconstruction(output: Tensor, images: Tensor, kind: str, span: float = 1.0) -> tuple[Tensor, Tensor]:
    """Scores (N,) and map (N, 1, H, W) ≥ 0 of an autoencoder: the error per pixel and its mean.

    `kind` is l2 or ssim; the range of values that images span matters to ssim only.
    """
    error = objectives.reconstruction(output, images)
    if kind == "ssim":
        # Rounding puts 1 − SSIM of equal images a little below zero.
        error = (1 - objectives.ssim(output, images, span)).clamp(min=0)
    return error.flatten(1).mean(1), error


def blur(maps: Tensor, sigma: float, size: int) -> Tensor:
    """Maps (N, 1, H, W) smoothed by the Gaussian that brings A to full resolution, so that they compare with A′.

    `size` is the side of FCDD's receptive field, where that Gaussian ends. It is `upsample` at stride 1, so, as there,
    heat that would leave the image is lost.
    """
    return upsample(maps, Field(size=size), (maps.shape[-2], maps.shape[-1]), sigma)
