"""Upsampling against Algorithm 1's double loop, and the contrast curve against its definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from fcdd.nn.fcn import NETWORKS
from fcdd.nn.fields import Field
from fcdd.nn.networks import build
from fcdd.nn.upsampling import normalise, upsample


def double_loop(A: np.ndarray, field: Field, size: tuple[int, int], sigma: float) -> np.ndarray:
    """Algorithm 1, pixel by pixel, each Gaussian cut at its cell's receptive field."""
    out = np.zeros(size)
    ys, xs = np.mgrid[: size[0], : size[1]]
    half = (field.size - 1) / 2
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            cy, cx = field.start + i * field.stride, field.start + j * field.stride
            density = np.exp(-((ys - cy) ** 2 + (xs - cx) ** 2) / (2 * sigma**2)) / (2 * math.pi * sigma**2)
            out += A[i, j] * density * ((abs(ys - cy) <= half) & (abs(xs - cx) <= half))
    return out


@pytest.mark.parametrize(
    ("field", "cells", "size"),
    [
        (Field(16, 4, 1.5), (7, 7), (28, 28)),
        (Field(5, 2, 0.0), (6, 9), (12, 18)),
        (Field(62, 8, 3.5), (5, 4), (43, 35)),  # sizes that do not divide
        (Field(9, 4, 2.0), (3, 3), (30, 5)),  # larger and smaller than the cells reach
    ],
)
def test_upsample_is_the_double_loop(field: Field, cells: tuple[int, int], size: tuple[int, int]) -> None:
    A = torch.rand(2, 1, *cells)
    fast = upsample(A, field, size, sigma=3.0)
    for a, b in zip(A[:, 0], fast[:, 0], strict=True):
        assert np.allclose(double_loop(a.numpy(), field, size, 3.0), b.numpy(), atol=1e-7)


@pytest.mark.parametrize("name", NETWORKS)
def test_upsample_is_a_strided_transposed_convolution_for_every_network(name: str) -> None:
    network = build(name).eval()
    field, side = network.field, max(32, network.field.stride * 5)
    with torch.no_grad():
        A = network(torch.rand(1, network.channels, side, side)).abs()
    sigma = field.size / 5
    offsets = torch.arange(field.size) - (field.size - 1) / 2
    line = torch.exp(-(offsets**2) / (2 * sigma**2)) / (math.sqrt(2 * math.pi) * sigma)
    full = F.conv_transpose2d(A, torch.outer(line, line)[None, None], stride=field.stride)
    margin = int((field.size - 1) / 2 - field.start)
    expected = full[..., margin : margin + side, margin : margin + side]
    assert torch.allclose(upsample(A, field, side, sigma), expected, atol=1e-5 * float(expected.max()))


def test_heat_stands_where_its_cell_looks() -> None:
    field = build("vgg11").field
    A = torch.zeros(1, 1, 28, 28)
    A[0, 0, 20, 5] = 1.0
    y, x = divmod(int(upsample(A, field, 224, 12.0).argmax()), 224)
    assert abs(y - (3.5 + 20 * 8)) <= 0.5
    assert abs(x - (3.5 + 5 * 8)) <= 0.5


def test_upsample_carries_gradients() -> None:
    A = torch.rand(1, 1, 4, 4, requires_grad=True)
    upsample(A, Field(16, 4, 1.5), 16, 2.0).sum().backward()
    assert A.grad is not None
    assert (A.grad > 0).all()


def test_sigma_must_be_positive() -> None:
    with pytest.raises(ValueError, match="sigma"):
        upsample(torch.ones(1, 1, 2, 2), Field(3, 1, 0), 2, 0.0)


def test_normalise_alone_and_against_a_reference() -> None:
    maps = torch.rand(3, 1, 20, 20) * torch.tensor([1.0, 5.0, 0.2]).view(3, 1, 1, 1) + 1
    alone = normalise(maps, eta=0.9)
    for one, seen in zip(maps.numpy(), alone.numpy(), strict=True):
        shifted = one - one.min()
        assert np.allclose(np.minimum(shifted / np.quantile(shifted, 0.9), 1), seen, atol=1e-5)
    together = normalise(maps, eta=0.9, reference=maps)
    shifted = maps.numpy() - maps.numpy().min()
    assert np.allclose(np.minimum(shifted / np.quantile(shifted, 0.9), 1), together.numpy(), atol=1e-5)
    assert together[2].max() < 0.1 < together[1].max()


def test_a_constant_map_stays_dark() -> None:
    assert normalise(torch.full((1, 1, 4, 4), 3.0)).max() == 0
    with pytest.raises(ValueError, match="eta"):
        normalise(torch.ones(1, 1, 2, 2), eta=0)
