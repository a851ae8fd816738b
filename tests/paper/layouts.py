"""Small datasets in the official layouts, which networks of 28 and 32 px learn in seconds."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from ..toy import stripes

# What brings the 224 px recipes to a size that a test can train.
SMALL = (
    "--set", "network=cifar", "--set", "size=32", "--set", "stored=32", "--set", "augment=none", "--set", "freeze=0",
    "--set", "pretrained=false", "--set", "sigma=2.0", "--set", "batch=8", "--set", "passes=1",
)  # fmt: skip


def fashion_mnist(root: Path, train: int = 48, test: int = 16) -> Path:
    """Class 1 is horizontal stripes, class 0 vertical ones; `aux` holds noise and vertical stripes as exposure."""
    root.mkdir(exist_ok=True)
    for part, count in (("train", train), ("t10k", test)):
        images = torch.cat([stripes(count, False, len(part)), stripes(count, True, len(part) + 1)])
        labels = bytes([1] * count + [0] * count)
        header = struct.pack(">IIII", 2051, len(images), 28, 28)
        _packed(root / f"{part}-images-idx3-ubyte.gz", header + images.numpy().tobytes())
        _packed(root / f"{part}-labels-idx1-ubyte.gz", struct.pack(">II", 2049, len(labels)) + labels)
    (root / "aux").mkdir()
    for index, image in enumerate(stripes(12, True, 77)):
        Image.fromarray(image[0].numpy()).save(root / "aux" / f"{index}.png")
        noise = np.random.default_rng(index).integers(0, 256, (28, 28), dtype=np.uint8)
        Image.fromarray(noise).save(root / "aux" / f"noise{index}.png")
    return root


def emnist(root: Path, count: int = 24) -> Path:
    pixels = stripes(count, True, 5).numpy().tobytes()
    _packed(root / "emnist-letters-test-images-idx3-ubyte.gz", struct.pack(">IIII", 2051, count, 28, 28) + pixels)
    return root


def mnist(root: Path, count: int = 24) -> Path:
    (root / "mnist").mkdir()
    pixels = stripes(count, True, 6).numpy().tobytes()
    _packed(root / "mnist" / "t10k-images-idx3-ubyte.gz", struct.pack(">IIII", 2051, count, 28, 28) + pixels)
    return root


def cifar(root: Path, count: int = 24) -> Path:
    """CIFAR-10 with classes 0 (dark) and 1 (bright) in one training batch, and CIFAR-100's test images of noise."""
    generator = np.random.default_rng(0)
    folder = root / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    for name in ("data_batch_1", "test_batch"):
        labels = np.repeat([0, 1], count)[:, None]
        levels = labels * 120 + generator.integers(0, 100, (2 * count, 3072))
        (folder / f"{name}.bin").write_bytes(np.hstack([labels, levels]).astype(np.uint8).tobytes())
    (root / "cifar-100-binary").mkdir()
    noise = generator.integers(0, 256, (2048 + 8, 3074), dtype=np.uint8)
    noise[:, :2] = 0
    (root / "cifar-100-binary" / "test.bin").write_bytes(noise.tobytes())
    return root


def mvtec(root: Path, normal: str = "bottle", good: int = 16, size: int = 48) -> Path:
    """Grey plates; two defect types: a white spot and a black one."""
    generator = np.random.default_rng(1)

    def plate() -> np.ndarray:
        return (128 + generator.normal(0, 12, (size, size, 3))).clip(0, 255).astype(np.uint8)

    place = root / "mvtec" / normal
    for part, count in (("train/good", good), ("test/good", 4)):
        (place / part).mkdir(parents=True)
        for index in range(count):
            Image.fromarray(plate()).save(place / part / f"{index:03}.png")
    for kind, level in (("white", 255), ("black", 0)):
        (place / "test" / kind).mkdir(parents=True)
        (place / "ground_truth" / kind).mkdir(parents=True)
        for index in range(3):
            image, mask = plate(), np.zeros((size, size), np.uint8)
            top, left = generator.integers(4, size - 16, 2)
            image[top : top + 12, left : left + 12], mask[top : top + 12, left : left + 12] = level, 255
            Image.fromarray(image).save(place / "test" / kind / f"{index:03}.png")
            Image.fromarray(mask).save(place / "ground_truth" / kind / f"{index:03}_mask.png")
    return root


def voc(root: Path, horses: int = 10, others: int = 14, size: int = 64) -> Path:
    """Brown horses and green others, in the lists of trainval and test alike; two more horses bear a real mark."""
    generator = np.random.default_rng(2)
    place = root / "VOCdevkit" / "VOC2007"
    (place / "ImageSets" / "Main").mkdir(parents=True)
    (place / "JPEGImages").mkdir()
    for part in ("trainval", "test"):
        lines = []
        for index in range(horses + others):
            horse = index < horses
            colour = np.array([110, 80, 50] if horse else [60, 120, 60])
            image = (colour + generator.normal(0, 20, (size, size, 3))).clip(0, 255).astype(np.uint8)
            Image.fromarray(image).save(place / "JPEGImages" / f"{part}{index:03}.jpg", quality=95)
            lines.append(f"{part}{index:03} {1 if horse else -1}")
        marked = np.full((size, size, 3), 90, np.uint8)
        marked[-9:-5, 4:28] = 255
        Image.fromarray(marked).save(place / "JPEGImages" / f"{part}-marked.jpg")
        lines.append(f"{part}-marked 1")
        (place / "ImageSets" / "Main" / f"horse_{part}.txt").write_text("\n".join(lines) + "\n")
    (place / "watermarked.txt").write_text("trainval-marked\ntest-marked\n")
    return root


def imagenette(root: Path, count: int = 4, size: int = 48) -> Path:
    """Two classes of blue noise in ImageNet's layout."""
    generator = np.random.default_rng(3)
    for part in ("train", "val"):
        for wnid in ("n01440764", "n02102040"):
            folder = root / "imagenette" / part / wnid
            folder.mkdir(parents=True)
            for index in range(count):
                pixels = np.array([40, 60, 150]) + generator.normal(0, 30, (size, size, 3))
                Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / f"{index}.png")
    return root


def _packed(path: Path, content: bytes) -> None:
    with gzip.open(path, "wb") as file:
        file.write(content)
