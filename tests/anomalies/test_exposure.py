from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fcdd import images
from fcdd.anomalies.exposure import conform, exposure
from fcdd.errors import DataError

RNG = np.random.default_rng(0)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def corpus(tmp_path: Path) -> np.ndarray:
    """Fifty CIFAR-100 test images of smooth colour, in the official binary layout."""
    small = RNG.integers(0, 256, (50, 4, 4, 3), dtype=np.uint8)
    pixels = np.stack([np.asarray(Image.fromarray(one).resize((32, 32), Image.Resampling.BICUBIC)) for one in small])
    rows = np.concatenate([np.zeros((50, 2), np.uint8), pixels.transpose(0, 3, 1, 2).reshape(50, -1)], axis=1)
    (tmp_path / "test.bin").write_bytes(rows.tobytes())
    return pixels


def test_cifar100_serves_fashion_mnist(tmp_path: Path, corpus: np.ndarray) -> None:
    source, provenance = exposure("cifar100", tmp_path, channels=1, size=28, generator=generator())
    assert provenance == "CIFAR-100 binary, test images (50 of 10,000)"
    read = source[torch.arange(50)]
    assert read.shape == (50, 1, 28, 28)
    assert read.dtype == torch.uint8
    expected = np.stack([images.resize(images.luma(one), 28) for one in corpus])
    assert np.abs(read[:, 0].numpy().astype(int) - expected).max() <= 1


def test_cifar100_in_its_own_size_is_untouched(tmp_path: Path, corpus: np.ndarray) -> None:
    source, _ = exposure("cifar100", tmp_path, channels=3, size=32, generator=generator())
    np.testing.assert_array_equal(source[torch.arange(50)].numpy(), corpus.transpose(0, 3, 1, 2))


def test_gray_is_repeated_and_shrinking_antialiased() -> None:
    stripes = torch.tensor([0, 255], dtype=torch.uint8).repeat(32).expand(3, 1, 64, 64)
    small = conform(stripes, 3, 8)
    assert small.shape == (3, 3, 8, 8)
    assert torch.equal(small[:, 0], small[:, 2])
    assert (small[..., 1:-1].int() - 127).abs().max() <= 1


@pytest.mark.parametrize("limit", [2, 8, 50])
def test_limit_draws_distinct_images(tmp_path: Path, corpus: np.ndarray, limit: int) -> None:
    def draw(seed: int) -> torch.Tensor:
        source, provenance = exposure("cifar100", tmp_path, channels=3, size=32, limit=limit, generator=generator(seed))
        assert provenance.endswith(f", {limit} drawn at random")
        return source[torch.arange(len(source))]

    drawn = draw(0)
    assert len(drawn) == len(drawn.flatten(1).unique(dim=0)) == limit
    assert torch.equal(drawn, draw(0))
    assert not torch.equal(drawn, draw(1))


def test_more_than_there_are_is_refused(tmp_path: Path, corpus: np.ndarray) -> None:
    for limit in (51, 0, -1):
        with pytest.raises(DataError, match=f"has 50 images, {limit} asked for"):
            exposure("cifar100", tmp_path, channels=3, size=32, limit=limit, generator=generator())


def test_a_folder_of_files(tmp_path: Path) -> None:
    for level in range(9):
        images.save_png(np.full((20, 30, 3), level, dtype=np.uint8), tmp_path / f"{level}.png")
    source, provenance = exposure(f"folder:{tmp_path}", None, channels=1, size=8, limit=5, generator=generator())
    levels = source[torch.arange(5)]
    assert levels.shape == (5, 1, 8, 8)
    assert len(levels.unique()) == 5
    assert str(tmp_path) in provenance
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="has 0 images"):
        exposure(f"folder:{tmp_path / 'empty'}", None, channels=1, size=8, generator=generator())


def test_unknown_and_absent(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="choose one of: cifar100, emnist"):
        exposure("cifar1000", tmp_path, channels=3, size=32, generator=generator())
    with pytest.raises(DataError, match="in which folder"):
        exposure("emnist", None, channels=3, size=32, generator=generator())
    for name in ("cifar100", "emnist", "imagenet", "imagenet22k"):
        with pytest.raises(DataError):
            exposure(name, tmp_path, channels=3, size=32, generator=generator())


def test_real_corpora(shared_data: Path) -> None:
    if not (shared_data / "imagenette").is_dir() or not (shared_data / "cifar-100-binary").is_dir():
        pytest.skip("imagenette or CIFAR-100 not found")
    source, _ = exposure("imagenet", shared_data, channels=3, size=32, limit=128, generator=generator())
    assert source[torch.arange(16)].shape == (16, 3, 32, 32)
    assert len(source) == 128
    source, provenance = exposure("cifar100", shared_data, channels=1, size=28, generator=generator())
    assert len(source) == 10_000
    assert provenance == "CIFAR-100 binary, test images (10,000 of 10,000)"
