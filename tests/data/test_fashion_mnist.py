from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from fcdd.data import fashion_mnist
from fcdd.errors import DataError

DEBIAN = Path("/usr/share/datasets/fashion-mnist")


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def write_dataset(folder: Path, *, packed: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """A small Fashion-MNIST; image n is flat with level n, its label n mod 10."""
    folder.mkdir(parents=True, exist_ok=True)
    levels = np.arange(40, dtype=np.uint8)
    pixels = np.broadcast_to(levels[:, None, None], (40, 28, 28))
    for part in ("train", "t10k"):
        for name, array in ((f"{part}-images-idx3-ubyte", pixels), (f"{part}-labels-idx1-ubyte", levels % 10)):
            if packed:
                (folder / f"{name}.gz").write_bytes(gzip.compress(idx(array)))
            else:
                (folder / name).write_bytes(idx(array))
    return pixels, levels % 10


@pytest.mark.parametrize(("place", "packed"), [("", True), ("FashionMNIST/raw", False), ("fashion-mnist", True)])
def test_split_of_written_files(tmp_path: Path, place: str, packed: bool) -> None:
    write_dataset(tmp_path / place, packed=packed)
    split = fashion_mnist.split(tmp_path, "Dress")
    assert split.nominal[torch.arange(4)][:, 0, 5, 5].tolist() == [3, 13, 23, 33]
    assert split.labels.tolist() == [int(n % 10 != 3) for n in range(40)]
    assert split.kinds[:4] == ["t-shirt", "trouser", "pullover", "dress"]
    assert split.name == "fashion-mnist/dress"
    assert "40 of 60,000" in split.provenance


def test_class_names() -> None:
    for given, index in (("T-Shirt/Top", 0), ("trousers", 1), ("ANKLE BOOT", 9), ("7", 7), (4, 4), ("shirt", 6)):
        assert fashion_mnist.class_index(given) == index
    for wrong in ("hat", "10", -1):
        with pytest.raises(DataError, match="choose one of: t-shirt, trouser"):
            fashion_mnist.class_index(wrong)


def test_damaged_files_are_named(tmp_path: Path) -> None:
    whole = idx(np.zeros((3, 28, 28), dtype=np.uint8))
    bad = {
        "empty": b"",
        "magic": b"\0\0\x0d\x03" + whole[4:],
        "dimensions": b"\0\0\x08\x02" + whole[4:],
        "header": whole[:9],
        "short": whole[:-1],
        "long": whole + b"\0",
        "huge": b"\0\0\x08\x03" + b"\xff" * 12 + whole[16:],
        "gzip-cut.gz": gzip.compress(whole)[:-9],
        "gzip-flip.gz": gzip.compress(whole)[:20] + b"\0\0\0\0" + gzip.compress(whole)[24:],
        "page.gz": b"<html>404</html>",
    }
    for name, data in bad.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(DataError, match=f"{name}: .*"):
            fashion_mnist.read_idx(tmp_path / name)
    with pytest.raises(DataError, match="absent"):
        fashion_mnist.read_idx(tmp_path / "absent")


def test_wrong_counts_and_missing_files(tmp_path: Path) -> None:
    write_dataset(tmp_path)
    labels = tmp_path / "train-labels-idx1-ubyte.gz"
    for wrong in (np.zeros(39, dtype=np.uint8), np.full(40, 10, dtype=np.uint8)):
        labels.write_bytes(gzip.compress(idx(wrong)))
        with pytest.raises(DataError, match="train-labels"):
            fashion_mnist.split(tmp_path, 0)
    labels.unlink()
    with pytest.raises(DataError, match=r"train-labels-idx1-ubyte\.gz is missing.*zalandoresearch"):
        fashion_mnist.split(tmp_path, 0)
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(np.zeros((4, 30, 28), dtype=np.uint8))))
    with pytest.raises(DataError, match="expected \\(N, 28, 28\\)"):
        fashion_mnist.split(tmp_path, 0)


@pytest.mark.skipif(DEBIAN.is_dir(), reason="Debian's Fashion-MNIST is installed, so it is found")
def test_nothing_found_says_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="dataset-fashion-mnist"):
        fashion_mnist.split(tmp_path, 0)


@pytest.mark.skipif(not DEBIAN.is_dir(), reason="Debian's package dataset-fashion-mnist is not installed")
def test_the_official_files() -> None:
    split = fashion_mnist.split(None, "trousers")
    assert len(split.nominal) == 6000
    assert len(split.test) == 10_000
    assert int(split.labels.sum()) == 9000
    assert split.provenance.startswith("Fashion-MNIST idx, 60,000 of 60,000")
    mean = split.nominal[torch.arange(6000)].float().mean((0, 1))
    legs, gap = mean[20, [9, 18]].min(), mean[24, 14]
    assert legs > 2 * gap  # upright trousers: two legs with a gap between their ends


def test_emnist_is_turned_upright(tmp_path: Path, shared_data: Path) -> None:
    official = shared_data / "mnist" / "t10k-images-idx3-ubyte.gz"
    if not official.is_file():
        pytest.skip(f"{official} not found")
    digits = fashion_mnist.read_idx(official)
    assert digits.shape == (10_000, 28, 28)
    assert fashion_mnist.read_idx(shared_data / "mnist" / "t10k-labels-idx1-ubyte.gz")[:5].tolist() == [7, 2, 1, 0, 4]
    folder = tmp_path / "emnist"
    folder.mkdir()
    stored = np.ascontiguousarray(digits[:50].transpose(0, 2, 1))
    (folder / "emnist-letters-test-images-idx3-ubyte").write_bytes(idx(stored))
    letters, provenance = fashion_mnist.read_emnist(tmp_path)
    np.testing.assert_array_equal(letters[:, 0].numpy(), digits[:50])
    assert provenance == "EMNIST letters, test images (50)"
    (folder / "emnist-letters-train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(stored[:20])))
    assert fashion_mnist.read_emnist(tmp_path)[1] == "EMNIST letters, train images (20)"


def test_emnist_missing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"emnist-letters-train-images-idx3-ubyte\.gz.*nist\.gov"):
        fashion_mnist.read_emnist(tmp_path)
