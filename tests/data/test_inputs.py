"""Pictures as tensors of one shape, against Pillow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fcdd import images
from fcdd.data.inputs import Inputs, resized


def noise(height: int, width: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)


def test_resized_agrees_with_pillow_and_puts_channels_first() -> None:
    array = noise(50, 90)
    expected = np.asarray(Image.fromarray(array).resize((32, 16), Image.Resampling.BILINEAR))
    assert np.array_equal(resized(array, (16, 32)), expected.transpose(2, 0, 1))
    assert np.array_equal(resized(array, (50, 90)), array.transpose(2, 0, 1))


def test_inputs_are_a_source(tmp_path: Path) -> None:
    images.save_png(noise(20, 30), tmp_path / "a.png")
    flat = [np.full((10 + level, 12, 3), level, np.uint8) for level in range(3)]
    source = Inputs([tmp_path / "a.png", noise(20, 30), *flat], (16, 24))
    assert len(source) == 5
    batch = source[torch.tensor([4, 0, 1, 3])]
    assert batch.shape == (4, 3, 16, 24)
    assert batch.dtype == torch.uint8
    assert torch.equal(batch[1], batch[2])
    assert torch.equal(batch[[0, 3]], torch.tensor([2, 1], dtype=torch.uint8)[:, None, None, None].expand(2, 3, 16, 24))
    assert source[torch.empty(0, dtype=torch.int64)].shape == (0, 3, 16, 24)
    with pytest.raises(IndexError):
        source[torch.tensor([5])]
