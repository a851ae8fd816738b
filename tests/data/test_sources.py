"""Images of every kind as tensors of one shape, against Pillow."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fcdd import images
from fcdd.data.sources import Images
from fcdd.errors import ImageError
from fcdd.reading import problems

NOISE = np.random.default_rng(0).integers(0, 256, (50, 90, 3), dtype=np.uint8)


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """Twelve flat images, each of its own gray level and size."""
    made = [tmp_path / f"{level}.png" for level in range(12)]
    for level, path in enumerate(made):
        images.save_png(np.full((20 + level, 31, 3), level * 20, dtype=np.uint8), path)
    return made


def test_order_shape_and_dtype(paths: list[Path]) -> None:
    source = Images(paths, 8)
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


def test_paths_bytes_and_arrays_are_the_same_image(tmp_path: Path) -> None:
    images.save_png(NOISE, tmp_path / "a.png")
    source = Images([tmp_path / "a.png", (tmp_path / "a.png").read_bytes(), NOISE, str(tmp_path / "a.png")], (16, 24))
    batch = source.load()
    assert batch.shape == (4, 3, 16, 24)
    assert all(torch.equal(batch[0], other) for other in batch[1:])
    assert source.paths == [tmp_path / "a.png"] * 2
    grey = Images([NOISE[..., 0]], (5, 7), channels=1)
    assert torch.equal(grey.load()[0, 0], torch.from_numpy(images.resize(NOISE[..., 0], (5, 7))))


def test_it_survives_the_trip_to_another_process(paths: list[Path]) -> None:
    source = pickle.loads(pickle.dumps(Images(paths, 8, channels=1, fit="crop")))
    assert source[torch.tensor([3])].flatten().tolist() == [60] * 64


def test_sizes_agree_with_pillow() -> None:
    image = Image.fromarray(NOISE)
    stretched = np.asarray(image.resize((32, 16), Image.Resampling.BILINEAR))
    np.testing.assert_array_equal(Images([NOISE], (16, 32)).load()[0], stretched.transpose(2, 0, 1))
    np.testing.assert_array_equal(Images([NOISE], (50, 90)).load()[0], NOISE.transpose(2, 0, 1))
    cropped = np.asarray(image.convert("L").resize((45, 25), Image.Resampling.BILINEAR))[:, 10:35]
    np.testing.assert_array_equal(Images([NOISE], 25, 1, "crop").load()[0], cropped[None])


@pytest.mark.parametrize(("shape", "scaled", "window"), [
    ((25, 30), (25, 45), (slice(None), slice(7, 37))),  # the height decides
    ((20, 45), (25, 45), (slice(2, 22), slice(None))),  # the width decides
])  # fmt: skip
def test_a_crop_to_any_shape_keeps_proportions_and_centre(
    shape: tuple[int, int], scaled: tuple[int, int], window: tuple[slice, slice]
) -> None:
    whole = np.asarray(Image.fromarray(NOISE).resize(scaled[::-1], Image.Resampling.BILINEAR))
    cropped = Images([NOISE], shape, fit="crop").load()[0].permute(1, 2, 0).numpy()
    np.testing.assert_array_equal(cropped, whole[window])


def test_a_bad_file_is_named(paths: list[Path]) -> None:
    paths[4].write_bytes(paths[4].read_bytes()[:50])
    paths[9].write_text("no image")
    with pytest.raises(ImageError, match=r"4\.png"):
        Images(paths, 8).load()
    assert [error.source for error in problems(paths)] == [str(paths[4]), str(paths[9])]
    assert problems(paths[:4]) == []


def test_channels_are_one_or_three() -> None:
    with pytest.raises(ValueError, match="1 or 3"):
        Images([], 8, channels=4)
