from __future__ import annotations

import io
import os
import pickle
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch

from fcdd.data import cifar
from fcdd.errors import DataError

RNG = np.random.default_rng(0)


def python2_batch(pixels: np.ndarray, labels: list[int], key: bytes = b"labels") -> bytes:
    """The pickle python 2 wrote for {key: labels, "data": pixels}, opcode for opcode."""

    def text(value: bytes) -> bytes:
        return b"U" + bytes([len(value)]) + value

    def number(value: int) -> bytes:
        return b"J" + struct.pack("<i", value)

    dtype = b"cnumpy\ndtype\n(" + text(b"u1") + number(0) + number(1) + b"tR"
    dtype += b"(" + number(3) + text(b"|") + b"NNN" + number(-1) * 2 + number(0) + b"tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(" + number(0) + b"t" + text(b"b") + b"tR"
    shape = b"(" + b"".join(map(number, pixels.shape)) + b"t"
    raw = b"T" + struct.pack("<i", pixels.size) + pixels.tobytes()
    array += b"(" + number(1) + shape + dtype + b"\x89" + raw + b"tb"
    listed = b"](" + b"".join(map(number, labels)) + b"e"
    return b"\x80\x02}(" + text(key) + listed + text(b"data") + array + b"u."


def some(count: int) -> tuple[np.ndarray, list[int]]:
    return RNG.integers(0, 256, (count, 3072), dtype=np.uint8), [n % 10 for n in range(count)]


def binary(pixels: np.ndarray, *labels: list[int]) -> bytes:
    return np.concatenate([np.array(labels, dtype=np.uint8).T, pixels], axis=1).tobytes()


def archive(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


def test_the_four_official_forms_agree(tmp_path: Path) -> None:
    batches = {name: some(20) for name in ("data_batch_2", "data_batch_4", "test_batch")}
    python = {f"cifar-10-batches-py/{name}": python2_batch(*batch) for name, batch in batches.items()}
    binaries = {
        f"cifar-10-batches-bin/{name}.bin": binary(pixels, labels) for name, (pixels, labels) in batches.items()
    }
    forms = {"py": python, "py.tar": python, "bin": binaries, "bin.tar": binaries}
    expected = np.concatenate([batches[f"data_batch_{n}"][0][3::10] for n in (2, 4)]).reshape(-1, 3, 32, 32)
    for form, files in forms.items():
        root = tmp_path / form
        root.mkdir()
        version = "python" if form.startswith("py") else "binary"
        if form.endswith("tar"):
            archive(root / f"cifar-10-{version}.tar.gz", files)
        for name, data in files.items():
            if not form.endswith("tar"):
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_bytes(data)
        for given in (root, next(root.iterdir())):
            split = cifar.split(given, "CAT")
            np.testing.assert_array_equal(split.nominal[torch.arange(4)].numpy(), expected)
            np.testing.assert_array_equal(split.test[torch.arange(20)].flatten(1).numpy(), batches["test_batch"][0])
            assert split.labels.tolist() == [int(n % 10 != 3) for n in range(20)]
            assert split.provenance == f"CIFAR-10 {version}, train batches 2,4 of 5, test batch"
            assert split.kinds[:2] == ["airplane", "automobile"]


class Malice:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {self.target}",)

    def __init__(self, target: Path) -> None:
        self.target = target


@pytest.mark.parametrize("protocol", range(6))
def test_a_malicious_pickle_runs_nothing(tmp_path: Path, protocol: int) -> None:
    target = tmp_path / "touched"
    harm = pickle.dumps({"data": Malice(target), "labels": [1]}, protocol=protocol)
    for name in ("data_batch_1", "test_batch"):
        (tmp_path / name).write_bytes(harm)
    with pytest.raises(DataError, match=r"data_batch_1.*refused .*system"):
        cifar.split(tmp_path, 0)
    assert not target.exists()


@pytest.mark.parametrize("called", ["builtins\neval", "numpy\nload", "numpy.core.multiarray\nfromfile", "os\nsystem"])
def test_only_arrays_are_admitted(tmp_path: Path, called: str) -> None:
    harm = f"c{called}\n(S'1'\ntR.".encode()
    (tmp_path / "data_batch_1").write_bytes(harm)
    with pytest.raises(DataError, match="refused"):
        cifar.split(tmp_path, 0)


def test_damaged_batches_are_named(tmp_path: Path) -> None:
    pixels, labels = some(10)
    whole = python2_batch(pixels, labels)
    bad = {
        "empty": b"",
        "cut": whole[:1000],
        "no dictionary": pickle.dumps([1, 2], protocol=2),
        "no data": python2_batch(pixels, labels, b"names"),
        "counts": python2_batch(pixels, labels[:-1]),
        "width": python2_batch(pixels[:, :3000].copy(), labels),
        "label": python2_batch(pixels, [10, *labels[1:]]),
        "no array": b"\x80\x02}(U\x06labels](K\x01eU\x04dataU\x01xu.",
        "shape lies": whole.replace(struct.pack("<i", 3072), struct.pack("<i", 3073), 1),
    }
    (tmp_path / "test_batch").write_bytes(whole)
    for data in bad.values():
        (tmp_path / "data_batch_1").write_bytes(data)
        with pytest.raises(DataError, match=r"data_batch_1: .*Fetch it again"):
            cifar.split(tmp_path, 0)


def test_missing_parts_and_damaged_archives(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cifar-10-batches-py/data_batch_1.*kriz/cifar-10-python\.tar\.gz"):
        cifar.split(tmp_path, 0)
    with pytest.raises(DataError, match="no class 'zebra'; choose one of: airplane"):
        cifar.split(tmp_path, "zebra")
    path = tmp_path / "cifar-10-python.tar.gz"
    archive(path, {"cifar-10-batches-py/data_batch_1": python2_batch(*some(40))})
    whole = path.read_bytes()
    with pytest.raises(DataError, match="test_batch is missing"):
        cifar.split(tmp_path, 0)
    for data in (whole[: len(whole) // 2], b"no archive", whole[:90] + b"\0\0\0\0" + whole[94:]):
        path.write_bytes(data)
        with pytest.raises(DataError, match="damaged or truncated archive"):
            cifar.split(tmp_path, 0)
    (tmp_path / "test_batch.bin").write_bytes(binary(*some(3))[:-1])
    path.unlink()
    with pytest.raises(DataError, match="no multiple of 3073"):
        cifar.split(tmp_path, 0)


def test_cifar100_prefers_the_training_images(tmp_path: Path) -> None:
    test, labels = some(4)
    (tmp_path / "test.bin").write_bytes(binary(test, labels, [99, 0, 5, 7]))
    corpus, provenance = cifar.read_cifar100(tmp_path)
    np.testing.assert_array_equal(corpus.flatten(1).numpy(), test)
    assert provenance == "CIFAR-100 binary, test images (4 of 10,000)"
    train, fine = some(6)
    archive(
        tmp_path / "cifar-100-python.tar.gz", {"cifar-100-python/train": python2_batch(train, fine, b"fine_labels")}
    )
    corpus, provenance = cifar.read_cifar100(tmp_path)
    np.testing.assert_array_equal(corpus.flatten(1).numpy(), train)
    assert provenance == "CIFAR-100 python, train images (6 of 50,000)"
    (tmp_path / "train.bin").write_bytes(binary(train, fine, [100] * 6))
    with pytest.raises(DataError, match="labels outside"):
        cifar.read_cifar100(tmp_path)
    with pytest.raises(DataError, match=r"cifar-100-binary\.tar\.gz"):
        cifar.read_cifar100(tmp_path / "absent")


def test_the_official_files(shared_data: Path) -> None:
    if not (shared_data / "cifar-10-batches-py").is_dir():
        pytest.skip("CIFAR-10 not found")
    split = cifar.split(shared_data, "plane")
    assert len(split.nominal) == 1005 + 984  # as counted in the official batches 1 and 2
    assert len(split.test) == 10_000
    assert int(split.labels.sum()) == 9000
    assert split.provenance == "CIFAR-10 python, train batches 1,2 of 5, test batch"
    assert split.kinds[0] == "cat"
    assert split.test[torch.tensor([0])][0, :, 0, 0].tolist() == [158, 112, 49]
