"""Generated parts, and what can go wrong with their images."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from fcdd.check import Diagnosis

Pixels = NDArray[np.uint8]
SIDE = 64


def part(rng: np.random.Generator, side: int = SIDE) -> Pixels:
    """A disc on a dark ground, the same place and light each time, with a grain and noise of its own."""
    rows, columns = np.mgrid[:side, :side] / side - 0.5
    disc = (rows**2 + columns**2 < 0.16)[:, :, None] * np.array([110.0, 80.0, 60.0])
    coarse = Image.fromarray(rng.normal(0, 12, (24, 24)).astype(np.float32))
    grain = np.asarray(coarse.resize((side, side), Image.Resampling.BICUBIC))[:, :, None]
    pixels = 50 + disc + grain + rng.normal(0, 2, (side, side, 3)) + rng.normal(0, 2)
    return np.clip(pixels, 0, 255).astype(np.uint8)


def spot() -> Pixels:
    mask = np.zeros((SIDE, SIDE), dtype=np.uint8)
    mask[26:34, 26:34] = 255
    return mask


def darker(pixels: Pixels) -> Pixels:
    return (pixels * 0.6).astype(np.uint8)


def blurred(pixels: Pixels, radius: float = 2) -> Pixels:
    return np.asarray(Image.fromarray(pixels).filter(ImageFilter.GaussianBlur(radius)))


def bluer(pixels: Pixels) -> Pixels:
    return np.clip(pixels + np.array([0, 0, 30]), 0, 255).astype(np.uint8)


def moved(pixels: Pixels) -> Pixels:
    """The disc in the corners: the same light, another image."""
    return np.roll(pixels, (pixels.shape[0] // 2, pixels.shape[1] // 2), axis=(0, 1))


def load(path: Path) -> Pixels:
    return np.asarray(Image.open(path))


def save(pixels: Pixels, path: Path, **options: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # never through a link into the clean folder
    Image.fromarray(pixels).save(path, **options)


def copy(clean: Path, target: Path) -> Path:
    """A copy to be spoilt; of links, because real files are slow to write and to remove."""
    return Path(shutil.copytree(clean, target, copy_function=os.link))


def brief(diagnosis: Diagnosis) -> set[tuple[str, ...]]:
    """(severity, code, *files) of each finding, to be compared as a whole: no false alarm goes unnoticed."""
    found = [(finding.severity, finding.code, *sorted(finding.files)) for finding in diagnosis.findings]
    assert len(set(found)) == len(found)
    return set(found)
