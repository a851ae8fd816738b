"""The inspector's network on a toy texture: shapes, lighting, alignment of its taps, and that it finds a patch."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from fcdd.nn.architecture import Architecture
from fcdd.nn.description import Description
from fcdd.nn.fields import Field
from fcdd.nn.grids import grid_matrix
from fcdd.seeds import generator_of

SMALL = Architecture(planes=4, directions=2)
SIDE = 96


def textures(count: int, seed: int) -> Tensor:
    """Oblique waves of random phase with a little noise, (N, 3, 96, 96) in 0…255."""
    generator = generator_of(seed, "textures")
    y, x = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    phase = 2 * math.pi * torch.rand(count, 1, 1, generator=generator)
    wave = 120 + 40 * torch.sin((2 * x + y) / 5 + phase)
    noise = 4 * torch.randn(count, 3, SIDE, SIDE, generator=generator)
    return (wave[:, None] * torch.tensor([1.0, 0.9, 0.8]).view(3, 1, 1) + noise).round().clamp(0, 255)


@pytest.fixture(scope="module")
def fitted() -> Description:
    description = Description(SMALL).eval()
    description.trunk.load()
    good = textures(12, seed=0)
    description.fit_light(good)
    with torch.no_grad():
        features = description.features(good)
        description.fit(features.flatten(2).transpose(1, 2).flatten(0, 1), generator_of(0, "planes"))
    return description


@torch.no_grad()
def cells(description: Description, images: Tensor) -> Tensor:
    A: Tensor = description(images)
    return A


def test_cells_lie_on_a_grid_of_stride_8_and_are_not_negative() -> None:
    description = Description(Architecture(planes=3, directions=2)).eval()  # all taps, untrained
    for height, width in ((64, 64), (64, 112)):
        A = cells(description, 255 * torch.rand(2, 3, height, width, generator=generator_of(0)))
        assert A.shape == (2, 1, height // 8, width // 8)
        assert (A >= 0).all()
        assert torch.isfinite(A).all()


def test_a_patch_of_another_texture_is_the_hottest_place(fitted: Description) -> None:
    good = textures(4, seed=1)
    bad = good.clone()
    bad[..., 40:64, 56:80] = bad[..., 40:64, 56:80].transpose(2, 3)  # same colours, another direction
    before, after = cells(fitted, good), cells(fitted, bad)
    assert (after.amax((1, 2, 3)) > 2 * before.amax((1, 2, 3))).all()
    for one in after[:, 0]:
        y, x = divmod(int(one.argmax()), one.shape[1])
        assert 40 <= 3 + 8 * y < 64
        assert 56 <= 3 + 8 * x < 80


def test_unseen_good_images_are_near_the_scale_of_the_fit(fitted: Description) -> None:
    """d² is measured in its mean over good cells, so A = √(d²/s² + 1) − 1 is near √2 − 1 for a typical good cell."""
    assert 0.2 < cells(fitted, textures(6, seed=2)).mean() < 0.8


def test_A_is_the_pseudo_huber_norm_of_the_distance_to_the_planes(fitted: Description) -> None:
    image = textures(1, seed=3)
    with torch.no_grad():
        d2 = fitted.planes(fitted.whiten(fitted.features(image)[0].flatten(1).T)).double()
    expected = torch.sqrt(d2 / fitted.scale.double() + 1) - 1
    assert torch.allclose(cells(fitted, image).flatten().double(), expected, rtol=1e-3, atol=1e-5)


def test_an_ageing_lamp_is_no_defect(fitted: Description) -> None:
    good = textures(6, seed=4)
    before = cells(fitted, good)
    darker = cells(fitted, (0.93 * good).round())
    much_darker = cells(fitted, (0.5 * good).round())
    change = (darker - before).abs().mean()
    assert change < 0.15 * before.mean()
    assert (much_darker - before).abs().mean() > 5 * change  # the gain ends at a quarter


def test_relighting_brings_each_channel_to_the_level_within_its_limits(fitted: Description) -> None:
    good = textures(3, seed=5)
    cast = good * torch.tensor([0.9, 1.1, 1.2]).view(3, 1, 1)
    assert torch.allclose(fitted.relight(cast).mean((2, 3)), fitted.level.expand(3, 3), rtol=1e-4)
    assert torch.allclose(fitted.relight(0.4 * good), 1.25 * 0.4 * good, rtol=1e-4)
    assert torch.allclose(fitted.relight(2 * good), 0.8 * 2 * good, rtol=1e-4)
    assert torch.isfinite(fitted.relight(torch.zeros_like(good))).all()


def test_every_tap_shows_a_ramp_at_the_centres_of_the_cells() -> None:
    """With means for convolutions a cell's features are the brightness at its centre, whatever the tap's grid."""
    description = Description(Architecture(planes=2, directions=1)).eval()
    for module in description.trunk.modules():
        if isinstance(module, nn.Conv2d):
            assert module.bias is not None
            nn.init.constant_(module.weight, 1 / module.weight[0].numel())
            nn.init.zeros_(module.bias)
    width = 480  # wider than the widest field, whose reflected border would bend the ramp
    ramp = 128 + torch.arange(width) / 64  # small, so that no ReLU6 bends it either
    image = ramp.expand(1, 3, 64, width)
    description.level.copy_(image.mean((0, 2, 3)))
    features = description.features(image)
    half = (max(f.size for f in description.trunk.fields) - 1) / 2 + 24  # and what alignment and mean add
    centres = torch.tensor(description.field.centres(width // 8))
    inner = (centres >= half) & (centres <= width - 1 - half)
    assert inner.sum() >= 8
    brightness = ((128 + centres / 64 - 127) / 128)[inner]
    # Channels of each tap, and the blocks up to it that add their input: each of them doubles a mean.
    for tap, (seen, skips) in enumerate(zip(features[0].split([24, 40, 80, 112]), (1, 2, 4, 6), strict=True)):
        assert torch.allclose(seen[..., inner] / 2**skips, brightness, rtol=1e-4), f"tap {tap}"


@pytest.mark.parametrize(
    ("source", "source_cells", "target", "cells"),
    [
        (Field(19, 4, 3.0), 24, Field(67, 8, 3.0), 12),  # finer
        (Field(147, 16, 11.0), 6, Field(67, 8, 3.0), 12),  # coarser, with another start
        (Field(7, 2, 1.0), 48, Field(67, 8, 3.0), 12),  # finer, between its cells
        (Field(67, 8, 3.0), 12, Field(67, 8, 3.0), 12),
    ],
)
def test_grid_matrix_puts_values_where_they_belong(source: Field, source_cells: int, target: Field, cells: int) -> None:
    matrix = torch.from_numpy(grid_matrix(source, source_cells, target, cells))
    assert matrix.shape == (cells, source_cells)
    assert (matrix >= 0).all()
    assert torch.allclose(matrix.sum(1), torch.ones(cells))
    there, here = torch.tensor(source.centres(source_cells)), torch.tensor(target.centres(cells))
    ramp = matrix @ (5 - 0.25 * there)
    reach = max(source.stride, target.stride)
    inner = (here - reach >= there[0]) & (here + reach <= there[-1])
    assert inner.sum() >= 6
    assert torch.allclose(ramp[inner], 5 - 0.25 * here[inner], atol=1e-4)
    assert ramp.max() <= 5 - 0.25 * there[0] + 1e-4  # beyond the outermost cells their value goes on
    assert ramp.min() >= 5 - 0.25 * there[-1] - 1e-4
