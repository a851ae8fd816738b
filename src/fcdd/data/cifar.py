"""CIFAR-10, one class against the rest, and CIFAR-100 for Outlier Exposure; python or binary, folder or .tar.gz."""

from __future__ import annotations

import io
import pickle
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fcdd.data import CORPORA, DATASETS, Corpus, Dataset, Split
from fcdd.errors import DataError

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_SYNONYMS = {"plane": 0, "car": 1}
_HOME = "https://www.cs.toronto.edu/~kriz/"
_PIXELS = 3 * 32 * 32
_LARGEST = 400 << 20  # bytes; the largest official file, CIFAR-100's train, has 155 MB


def split(root: Path, normal: str | int) -> Split:
    """`normal` (name or index) against the other nine CIFAR-10 classes; images (N, 3, 32, 32) uint8.

    `root` is the official folder or archive, or the folder that holds it. Whichever official training batches are
    present are used, and `provenance` says which.
    """
    index = class_index(normal)
    place, version, batches = _cifar10(root)
    numbers = [number for number in range(1, 6) if f"data_batch_{number}" in batches]
    if not numbers or "test_batch" not in batches:
        missing = "test_batch" if numbers else "data_batch_1 to data_batch_5"
        raise DataError(f"{place}: {missing} is missing. Unpack {_HOME}cifar-10-python.tar.gz again.")
    trained = [batches[f"data_batch_{number}"] for number in numbers]
    train = torch.cat([images for images, _ in trained])
    train_labels = torch.cat([labels for _, labels in trained])
    test, test_labels = batches["test_batch"]
    return Split(
        name=f"cifar-10/{CLASSES[index]}",
        nominal=train[train_labels == index],
        test=test,
        labels=(test_labels != index).long(),
        kinds=[CLASSES[label] for label in test_labels.tolist()],
        provenance=f"CIFAR-10 {version}, train batches {','.join(map(str, numbers))} of 5, test batch",
    )


def class_index(normal: str | int) -> int:
    """A CIFAR-10 class's index from its name (any case), a synonym, or the index itself."""
    text = str(normal).strip().lower()
    known = {**{name: at for at, name in enumerate(CLASSES)}, **{str(at): at for at in range(10)}, **_SYNONYMS}
    if text not in known:
        raise DataError(f"CIFAR-10 has no class {normal!r}; choose one of: {', '.join(CLASSES)}.")
    return known[text]


def read_cifar100(root: Path) -> tuple[Tensor, str]:
    """CIFAR-100 images (N, 3, 32, 32) uint8 and their provenance: the training images, else the test images."""
    for part, total in (("train", "50,000"), ("test", "10,000")):
        for version, suffix in (("binary", ".bin"), ("python", "")):
            for place in (root, root / f"cifar-100-{version}", root / f"cifar-100-{version}.tar.gz"):
                for name, data in _contents(place, [part + suffix]):
                    source = f"{place}: {name}"
                    images, _ = (
                        _binary(data, source, labels=2, classes=100)
                        if suffix
                        else _python(data, source, b"fine_labels", classes=100)
                    )
                    return images, f"CIFAR-100 {version}, {part} images ({len(images):,} of {total})"
    raise DataError(
        f"{root}: neither cifar-100-binary/train.bin nor another form of CIFAR-100 was found. "
        f"Unpack {_HOME}cifar-100-binary.tar.gz there."
    )


def _cifar10(root: Path) -> tuple[Path, str, dict[str, tuple[Tensor, Tensor]]]:
    """Where CIFAR-10 was found, in which version, and each batch's images and labels."""
    names = [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"]
    for version, suffix, folder in (("python", "", "cifar-10-batches-py"), ("binary", ".bin", "cifar-10-batches-bin")):
        for place in (root, root / folder, root / f"cifar-10-{version}.tar.gz"):
            batches = {}
            for name, data in _contents(place, [name + suffix for name in names]):
                source = f"{place}: {name}"
                batches[name.removesuffix(".bin")] = (
                    _binary(data, source, labels=1, classes=10)
                    if suffix
                    else _python(data, source, b"labels", classes=10)
                )
            if batches:
                return place, version, batches
    raise DataError(
        f"{root}: neither cifar-10-batches-py/data_batch_1 nor another form of CIFAR-10 was found. "
        f"Unpack {_HOME}cifar-10-python.tar.gz there."
    )


def _contents(place: Path, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """The named files of a folder or a .tar.gz, by their last name; nothing is unpacked to disk."""
    try:
        if place.is_dir():
            for name in names:
                if (place / name).is_file():
                    yield name, (place / name).read_bytes()
        elif place.is_file():
            with tarfile.open(place, "r:gz") as archive:
                for member in archive:
                    name = member.name.rpartition("/")[2]
                    stream = archive.extractfile(member) if name in names and member.size <= _LARGEST else None
                    if stream is not None:
                        yield name, stream.read()
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise DataError(f"{place}: damaged or truncated archive ({error}). Fetch it again.") from error


def _binary(data: bytes, source: str, *, labels: int, classes: int) -> tuple[Tensor, Tensor]:
    """Records of `labels` label bytes, the last of which counts, then 3 × 32 × 32 bytes."""
    record = labels + _PIXELS
    if not data or len(data) % record:
        raise DataError(f"{source}: {len(data)} bytes is no multiple of {record}; truncated? Fetch it again.")
    rows = np.frombuffer(data, dtype=np.uint8).reshape(-1, record)
    return _checked(rows[:, labels:], rows[:, labels - 1].tolist(), source, classes)


def _python(data: bytes, source: str, key: bytes, *, classes: int) -> tuple[Tensor, Tensor]:
    """A batch as python 2 pickled it: a dictionary with b"data", uint8 (N, 3072), and a list of labels."""
    try:
        batch = _Unpickler(io.BytesIO(data), encoding="bytes").load()
    except Exception as error:  # a damaged pickle raises almost any type
        raise DataError(f"{source}: not an official CIFAR batch ({error}). Fetch it again.") from error
    pixels, labels = (batch.get(b"data"), batch.get(key)) if isinstance(batch, dict) else (None, None)
    if not isinstance(pixels, _Array) or not isinstance(labels, list):
        raise DataError(f"{source}: no data and {key.decode()} in it. Fetch it again.")
    return _checked(pixels.array(source), labels, source, classes)


def _checked(pixels: NDArray[np.uint8], labels: list[Any], source: str, classes: int) -> tuple[Tensor, Tensor]:
    """Images (N, 3, 32, 32) uint8 and labels (N,) int64, or a DataError."""
    if pixels.ndim != 2 or pixels.shape[1] != _PIXELS or len(pixels) != len(labels) or not labels:
        raise DataError(f"{source}: pixels of shape {pixels.shape} for {len(labels)} labels. Fetch it again.")
    if not all(isinstance(label, int) and 0 <= label < classes for label in labels):
        raise DataError(f"{source}: labels outside 0..{classes - 1}. Fetch it again.")
    return torch.from_numpy(pixels.reshape(-1, 3, 32, 32).copy()), torch.tensor(labels)


class _Inert:
    """What a pickle gets instead of a class or function: it keeps what it is given and does nothing."""

    def __init__(self, *given: Any) -> None:
        self.state: Any = given

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Array(_Inert):
    """Stands for numpy.ndarray; its pickled state is (version, shape, dtype, is Fortran, bytes)."""

    def array(self, source: str) -> NDArray[np.uint8]:
        match self.state:
            case (_, (int(rows), int(columns)), _DType(text=b"u1"), fortran, bytes(data)):
                if not fortran and rows >= 0 and columns >= 0 and rows * columns == len(data):
                    return np.frombuffer(data, dtype=np.uint8).reshape(rows, columns)
        raise DataError(f"{source}: its array is not a whole uint8 matrix. Fetch it again.")


class _DType(_Inert):
    """Stands for numpy.dtype, called with its short name first."""

    def __init__(self, text: Any = b"", *given: Any) -> None:
        super().__init__(*given)
        self.text = text


class _Unpickler(pickle.Unpickler):
    """Admits containers, numbers, bytes and uint8 arrays; what it lets a pickle call is our own and inert."""

    _admitted = {  # noqa: RUF012
        ("numpy", "ndarray"): _Array,
        ("numpy", "dtype"): _DType,
        ("numpy.core.multiarray", "_reconstruct"): _Array,
        ("numpy._core.multiarray", "_reconstruct"): _Array,
    }

    def find_class(self, module: str, name: str, /) -> Any:
        if (module, name) not in self._admitted:
            raise pickle.UnpicklingError(f"refused {module}.{name}: only arrays and containers are admitted")
        return self._admitted[module, name]


DATASETS.register("cifar10")(
    Dataset(
        title="CIFAR-10",
        classes=CLASSES,
        read=lambda problem: split(problem.root, problem.normal),
        files=("cifar-10-*", "cifar-10-*/*_batch*", "*_batch*"),
        eta=0.85,
        short=20,
        meant=lambda word: CLASSES[class_index(word)],
    )
)
CORPORA.register("cifar100")(
    Corpus(read=lambda root, _: read_cifar100(root), files=("cifar-100-*", "cifar-100-*/t*", "t*.bin"))
)
