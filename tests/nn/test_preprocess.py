"""Preprocessing against slow formulas in numpy, and the reading of its constants from a model's metadata."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Generator, Tensor

from fcdd.errors import DataError, ModelError
from fcdd.nn.preprocess import Kind, Preprocess, fit, local_contrast


def pictures(n: int = 37, channels: int = 3) -> Tensor:
    """uint8 images of different brightness and contrast."""
    generator = Generator().manual_seed(0)
    mean, spread = torch.rand(2, n, channels, 1, 1, generator=generator)
    noise = torch.rand(n, channels, 9, 7, generator=generator) - 0.5
    return ((mean + spread * noise).clamp(0, 1) * 255).to(torch.uint8)


def slow_contrast(image: np.ndarray) -> np.ndarray:
    """One image (C, H, W) in [0, 1], value by value."""
    values = [float(v) for v in image.ravel()]
    mean = math.fsum(values) / len(values)
    deviation = math.fsum(abs(v - mean) for v in values) / len(values)
    return np.array([(v - mean) / deviation for v in values]).reshape(image.shape)


def test_local_contrast_equals_the_slow_formula() -> None:
    images = pictures().double() / 255
    expected = np.stack([slow_contrast(image) for image in images.numpy()])
    assert np.allclose(local_contrast(images).numpy(), expected, atol=1e-12)
    assert torch.allclose(local_contrast(images.float()).double(), torch.from_numpy(expected), atol=1e-4)


def test_local_contrast_ignores_lamp_and_survives_constant_images() -> None:
    images = pictures().float() / 255
    assert torch.allclose(local_contrast(images * 0.6 + 0.1), local_contrast(images), atol=1e-4)
    flat = local_contrast(torch.full((2, 3, 50, 50), 0.3))
    assert flat.abs().max() < 1e-6


@pytest.mark.parametrize("batch", [1, 10, 256])
def test_lcn_constants_are_the_extremes_of_the_training_set(batch: int) -> None:
    source = pictures()
    contrast = np.stack([slow_contrast(image) for image in source.numpy() / 255.0])
    low, high = contrast.min((0, 2, 3)), contrast.max((0, 2, 3))
    preprocess = fit("lcn", source, batch)
    assert np.allclose(preprocess.offset, low, atol=1e-12)
    assert np.allclose(preprocess.scale, high - low, atol=1e-12)
    output = preprocess(source.float() / 255)
    expected = (contrast - low[:, None, None]) / (high - low)[:, None, None]
    assert np.abs(output.numpy() - expected).max() < 1e-4
    assert torch.allclose(output.amin((0, 2, 3)), torch.zeros(3), atol=1e-5)
    assert torch.allclose(output.amax((0, 2, 3)), torch.ones(3), atol=1e-5)


@pytest.mark.parametrize("channels", [1, 3])
def test_standard_constants_are_mean_and_deviation(channels: int) -> None:
    source = pictures(channels=channels)
    values = source.numpy().astype(np.float64) / 255
    preprocess = fit("standard", source, 10)
    assert preprocess == fit("standard", source, 4)
    assert np.allclose(preprocess.offset, values.mean((0, 2, 3)), atol=1e-12)
    assert np.allclose(preprocess.scale, values.std((0, 2, 3)), atol=1e-10)
    output = preprocess(source.float() / 255)
    assert torch.allclose(output.mean((0, 2, 3)), torch.zeros(channels), atol=1e-5)
    assert torch.allclose(output.std((0, 2, 3), correction=0), torch.ones(channels), atol=1e-5)


@pytest.mark.parametrize("kind", ["lcn", "standard"])
def test_a_channel_without_spread_stays_finite(kind: Kind) -> None:
    source = torch.full((4, 3, 5, 5), 77, dtype=torch.uint8)
    preprocess = fit(kind, source)
    assert preprocess.scale == (1.0, 1.0, 1.0)
    assert preprocess(source.float() / 255).abs().max() < 1e-6


def test_none_is_identity_and_channels_are_checked() -> None:
    images = pictures().float() / 255
    assert fit("none", pictures())(images) is images
    with pytest.raises(ValueError, match="3 channels, called with 1"):
        fit("standard", pictures())(images[:, :1])
    with pytest.raises(DataError, match="no nominal"):
        fit("lcn", pictures()[:0])


@pytest.mark.parametrize("kind", ["lcn", "standard", "none"])
def test_json_round_trip_is_exact(kind: Kind) -> None:
    preprocess = fit(kind, pictures())
    assert Preprocess.from_dict(json.loads(json.dumps(preprocess.to_dict()))) == preprocess


GOOD: dict[str, Any] = {"kind": "lcn", "offset": [0.0, 1.0], "scale": [1.0, 2]}


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "zca"},
        {"kind": ["lcn"]},
        {"kind": "none"},
        {"offset": [0.0]},
        {"offset": [], "scale": []},
        {"offset": "01"},
        {"offset": [0.0, "1"]},
        {"offset": [0.0, True]},
        {"offset": [0.0, math.nan]},
        {"scale": [1.0, math.inf]},
        {"scale": [1.0, 0.0]},
        {"scale": [1.0, -1.0]},
        {"scale": None},
        {"gamma": 2},
    ],
)
def test_nonsense_in_a_model_is_refused(change: dict[str, Any]) -> None:
    assert Preprocess.from_dict(GOOD).scale == (1.0, 2.0)
    with pytest.raises(ModelError):
        Preprocess.from_dict(GOOD | change)


@pytest.mark.parametrize("values", [None, [], {"kind": "none"}])
def test_metadata_without_the_three_fields_is_refused(values: Any) -> None:
    with pytest.raises(ModelError, match="exactly kind, offset and scale"):
        Preprocess.from_dict(values)
