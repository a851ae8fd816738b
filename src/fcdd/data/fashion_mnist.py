"""Fashion-MNIST, one class against the rest, and EMNIST letters for Outlier Exposure: both are idx files."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fcdd.data import CORPORA, DATASETS, Corpus, Dataset, Split
from fcdd.errors import DataError

CLASSES = ("t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
_SYNONYMS = {"t-shirt/top": 0, "tshirt": 0, "top": 0, "trousers": 1, "boot": 9, "ankle-boot": 9, "ankle_boot": 9}
_DEBIAN = Path("/usr/share/datasets/fashion-mnist")
_FASHION = (
    "Get the four files from https://github.com/zalandoresearch/fashion-mnist, "
    "or install the Debian package dataset-fashion-mnist."
)
_EMNIST = "Get gzip.zip from https://www.nist.gov/itl/products-and-services/emnist-dataset and unpack it there."
_LARGEST = 1 << 31


def read_idx(path: str | Path) -> NDArray[np.uint8]:
    """One idx1 or idx3 file of unsigned bytes, plain or gzip by its content: (N,) or (N, H, W) uint8.

    Raises:
        DataError: not idx, or a length that differs from what the header says.
    """
    path = Path(path)
    try:
        with path.open("rb") as plain:
            packed = plain.read(2) == b"\x1f\x8b"
            plain.seek(0)
            if not packed:
                return _parse(plain.read(), path)
            with gzip.open(plain) as unpacked:
                return _parse(unpacked.read(_LARGEST), path)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged or truncated gzip ({error}). Fetch the file again.") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}).") from error


def _parse(data: bytes, path: Path) -> NDArray[np.uint8]:
    """idx: two zero bytes, the type (8 = unsigned byte), the number of dimensions, each as big-endian uint32."""
    if len(data) < 4 or data[:3] != b"\0\0\x08" or data[3] not in (1, 3) or len(data) < 4 + 4 * data[3]:
        raise DataError(f"{path}: not an idx file of unsigned bytes (starts with {data[:4].hex(' ')}). Fetch it again.")
    start = 4 + 4 * data[3]
    shape = struct.unpack(f">{data[3]}I", data[4:start])
    if len(data) - start != math.prod(shape):
        said = " × ".join(map(str, shape))
        raise DataError(f"{path}: {len(data) - start} bytes of data where its header says {said}. Fetch it again.")
    return np.frombuffer(data, dtype=np.uint8, offset=start).reshape(shape)


def split(root: Path | None, normal: str | int) -> Split:
    """`normal` against the other nine classes; images (N, 1, 28, 28) uint8.

    `normal` is a class's name or index. The files are looked for in `root`/FashionMNIST/raw, `root`/fashion-mnist,
    `root`, and where Debian's package puts them.
    """
    index = class_index(normal)
    inside = [root / "FashionMNIST" / "raw", root / "fashion-mnist", root] if root else []
    folder = _folder([*inside, _DEBIAN])
    train, train_labels = _pair(folder, "train")
    test, test_labels = _pair(folder, "t10k")
    return Split(
        name=f"fashion-mnist/{CLASSES[index]}",
        nominal=train[train_labels == index],
        test=test,
        labels=(test_labels != index).long(),
        kinds=[CLASSES[label] for label in test_labels.tolist()],
        provenance=f"Fashion-MNIST idx, {len(train):,} of 60,000 training and {len(test):,} of 10,000 test images",
    )


def class_index(normal: str | int) -> int:
    """A class's index from its name (any case), a synonym, or the index itself."""
    text = str(normal).strip().lower()
    known = {**{name: at for at, name in enumerate(CLASSES)}, **{str(at): at for at in range(10)}, **_SYNONYMS}
    if text not in known:
        raise DataError(f"Fashion-MNIST has no class {normal!r}; choose one of: {', '.join(CLASSES)}.")
    return known[text]


def read_emnist(root: Path) -> tuple[Tensor, str]:
    """EMNIST letters, upright, (N, 1, 28, 28) uint8, and its provenance. Training images, else the test images.

    The official files store every letter transposed.
    """
    folders = [root / "EMNIST" / "raw", root / "emnist", root / "gzip", root]
    for part in ("train", "test"):
        name = f"emnist-letters-{part}-images-idx3-ubyte"
        path = next(filter(None, (_find(folder, name) for folder in folders)), None)
        if path is not None:
            pixels = _images(path).transpose(0, 2, 1)
            return _tensor(pixels), f"EMNIST letters, {part} images ({len(pixels):,})"
    raise DataError(f"emnist-letters-train-images-idx3-ubyte.gz was not found in {root}. {_EMNIST}")


def read_mnist(root: Path) -> tuple[Tensor, str]:
    """MNIST's digits (N, 1, 28, 28) uint8, in the place of EMNIST's letters. Training images, else the test images."""
    folders = [root / "MNIST" / "raw", root / "mnist"]
    for part in ("train", "t10k"):
        path = next(filter(None, (_find(folder, f"{part}-images-idx3-ubyte") for folder in folders)), None)
        if path is not None:
            pixels = _images(path)
            kind = "training" if part == "train" else "test"
            return _tensor(pixels), f"MNIST digits, {kind} images ({len(pixels):,})"
    raise DataError(f"train-images-idx3-ubyte.gz was not found in {root}/mnist. Put MNIST's idx files there.")


def _pair(folder: Path, part: str) -> tuple[Tensor, Tensor]:
    """Images (N, 1, 28, 28) uint8 and labels (N,) int64 of "train" or "t10k"."""
    pixels = _images(_require(folder, f"{part}-images-idx3-ubyte"))
    path = _require(folder, f"{part}-labels-idx1-ubyte")
    labels = read_idx(path)
    if labels.shape != (len(pixels),) or (labels > 9).any():
        raise DataError(f"{path}: {labels.shape} labels up to {labels.max(initial=0)} for {len(pixels)} images.")
    return _tensor(pixels), torch.from_numpy(labels.astype(np.int64))


def _images(path: Path) -> NDArray[np.uint8]:
    pixels = read_idx(path)
    if pixels.ndim != 3 or pixels.shape[1:] != (28, 28):
        raise DataError(f"{path}: shape {pixels.shape}, expected (N, 28, 28).")
    return pixels


def _tensor(pixels: NDArray[np.uint8]) -> Tensor:
    return torch.from_numpy(np.array(pixels, order="C")[:, None])


def _find(folder: Path, name: str) -> Path | None:
    """The file, with or without .gz."""
    return next((path for path in (folder / f"{name}.gz", folder / name) if path.is_file()), None)


def _folder(folders: list[Path]) -> Path:
    name = "train-images-idx3-ubyte"
    for folder in folders:
        if _find(folder, name):
            return folder
    raise DataError(f"{name}.gz was not found in any of: {', '.join(map(str, folders))}. {_FASHION}")


def _require(folder: Path, name: str) -> Path:
    path = _find(folder, name)
    if path is None:
        raise DataError(f"{folder / name}.gz is missing. {_FASHION}")
    return path


DATASETS.register("fmnist")(
    Dataset(
        title="Fashion-MNIST",
        classes=CLASSES,
        read=lambda problem: split(problem.root, problem.normal),
        files=("FashionMNIST/raw/*-ubyte*", "fashion-mnist/*-ubyte*", "t*-ubyte*"),
        eta=0.85,
        short=8,
        meant=lambda word: CLASSES[class_index(word)],
    )
)
CORPORA.register("emnist")(
    Corpus(
        read=lambda root, _: read_emnist(root),
        files=(
            "EMNIST/raw/emnist-letters-*",
            "emnist/emnist-letters-*",
            "gzip/emnist-letters-*",
            "emnist-letters-*",
        ),
    )
)
CORPORA.register("mnist")(
    Corpus(read=lambda root, _: read_mnist(root), files=("MNIST/raw/*-images-*", "mnist/*-images-*"))
)
