"""Attributions against finite differences and their own completeness; blur and reconstruction against plain loops."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from fcdd.nn import attribution


@pytest.fixture(scope="module")
def network() -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.Tanh(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5)]
    return nn.Sequential(*layers).double().eval()


def score(network: nn.Module) -> attribution.Score:
    return lambda images: network(images).square().sum(1)


def images(seed: int = 1) -> Tensor:
    return torch.randn(3, 2, 8, 8, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_gradient_is_that_of_finite_differences(network: nn.Module) -> None:
    x, step = images(), 1e-6
    scores, slope = attribution.gradient(score(network), x)
    assert torch.equal(scores, score(network)(x))
    for n, c, i, j in [(0, 0, 0, 0), (1, 1, 3, 4), (2, 0, 6, 5)]:
        up, down = x.clone(), x.clone()
        up[n, c, i, j] += step
        down[n, c, i, j] -= step
        difference = (score(network)(up) - score(network)(down)) / (2 * step)
        assert slope[n, c, i, j].item() == pytest.approx(difference[n].item(), rel=1e-5, abs=1e-8)


def test_a_gradient_comes_out_where_none_is_recorded(network: nn.Module) -> None:
    with torch.no_grad():
        assert attribution.gradient(score(network), images())[1].abs().sum() > 0


@pytest.mark.parametrize("baseline", [None, images(5)])
def test_integrated_gradients_sum_to_the_difference_of_the_scores(network: nn.Module, baseline: Tensor | None) -> None:
    x = images()
    start = torch.zeros_like(x) if baseline is None else baseline
    scores, parts = attribution.integrated_gradients(score(network), x, baseline, steps=512)
    expected = score(network)(x) - score(network)(start)
    assert torch.equal(scores, score(network)(x))
    assert torch.allclose(parts.sum((1, 2, 3)), expected, rtol=2e-3, atol=2e-3)


def test_heat_is_the_sum_of_absolute_values_over_channels() -> None:
    slopes = torch.tensor([[[[1.0, -2.0]], [[-3.0, 0.5]]]])
    assert attribution.heat(slopes).tolist() == [[[[4.0, 2.5]]]]


def test_blur_is_a_gaussian_convolution_that_loses_what_leaves_the_image() -> None:
    maps, sigma = torch.rand(2, 1, 11, 9), 1.2
    blurred = attribution.blur(maps, sigma, size=8)  # an even field, as FCDD's nets have: three pixels either way
    assert blurred.shape == maps.shape
    for i, j in [(0, 0), (5, 4), (10, 3)]:
        expected = sum(
            maps[1, 0, a, b].item() * math.exp(-((a - i) ** 2 + (b - j) ** 2) / (2 * sigma**2))
            for a in range(11)
            for b in range(9)
            if max(abs(a - i), abs(b - j)) <= 3
        ) / (2 * math.pi * sigma**2)
        assert blurred[1, 0, i, j].item() == pytest.approx(expected, rel=1e-5)


def test_a_reconstruction_scores_by_the_mean_of_its_map() -> None:
    output, x = torch.rand(2, 3, 16, 16), torch.rand(2, 3, 16, 16)
    for kind in ("l2", "ssim"):
        scores, maps = attribution.reconstruction(output, x, kind)
        assert maps.shape == (2, 1, 16, 16)
        assert torch.allclose(scores, maps.mean((1, 2, 3)))
        same, none = attribution.reconstruction(x, x, kind)
        assert (none >= 0).all()
        assert same.max() < 1e-5 < scores.min()
    assert torch.allclose(attribution.reconstruction(output, x, "l2")[1], (output - x).square().mean(1, keepdim=True))
