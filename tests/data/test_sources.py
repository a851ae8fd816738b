from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fcdd import images
from fcdd.data.sources import Files, decode
from fcdd.errors import ImageError
from fcdd.reading import problems


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """Twelve flat images, each of its own gray level and size."""
    made = [tmp_path / f"{level}.png" for level in range(12)]
    for level, path in enumerate(made):
        images.save_png(np.full((20 + level, 31, 3), level * 20, dtype=np.uint8), path)
    return made


def test_order_shape_and_dtype(paths: list[Path]) -> None:
    source = Files(paths, 8)
    wanted = torch.tensor([7, 0, 11, 7])
    batch = source[wanted]
    assert batch.shape == (4, 3, 8, 8)
    assert batch.dtype == torch.uint8
    torch.testing.assert_close(batch, (wanted * 20).byte()[:, None, None, None].expand(4, 3, 8, 8))
    assert len(source) == 12
    torch.testing.assert_close(source.load()[wanted], batch)
    assert source[torch.empty(0, dtype=torch.int64)].shape == (0, 3, 8, 8)
    with pytest.raises(IndexError):
        source[torch.tensor([12])]


def test_it_survives_the_trip_to_another_process(paths: list[Path]) -> None:
    source = pickle.loads(pickle.dumps(Files(paths, 8, channels=1, fit="crop")))
    assert source[torch.tensor([3])].flatten().tolist() == [60] * 64


def test_decode_agrees_with_pillow(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (50, 90, 3), dtype=np.uint8)
    images.save_png(pixels, tmp_path / "a.png")
    image = Image.open(tmp_path / "a.png")
    stretched = np.asarray(image.resize((16, 16), Image.Resampling.BILINEAR))
    np.testing.assert_array_equal(decode(tmp_path / "a.png", 16), stretched.transpose(2, 0, 1))
    cropped = np.asarray(image.convert("L").resize((45, 25), Image.Resampling.BILINEAR))[:, 10:35]
    np.testing.assert_array_equal(decode(tmp_path / "a.png", 25, 1, "crop"), cropped[None])


def test_a_bad_file_is_named(paths: list[Path]) -> None:
    paths[4].write_bytes(paths[4].read_bytes()[:50])
    paths[9].write_text("no image")
    with pytest.raises(ImageError, match=r"4\.png"):
        Files(paths, 8).load()
    assert [error.source for error in problems(paths)] == [str(paths[4]), str(paths[9])]
    assert problems(paths[:4]) == []


def test_channels_are_one_or_three() -> None:
    with pytest.raises(ValueError, match="1 or 3"):
        Files([], 8, channels=4)
