"""Images on disk as a `Source`: decoded on demand, in threads, at one size."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fcdd import images
from fcdd.errors import ImageError
from fcdd.images import Fit

S = TypeVar("S")
T = TypeVar("T")


def decode(path: str | Path, size: int, channels: int = 3, fit: Fit = "stretch") -> NDArray[np.uint8]:
    """One file → (channels, size, size) uint8; with one channel, the ITU-R 601 luma."""
    pixels = images.load(path)
    if channels == 1:
        return images.resize(images.luma(pixels), size, fit)[None]
    return np.ascontiguousarray(images.resize(pixels, size, fit).transpose(2, 0, 1))


class Files:
    """Image files as a `Source` of uint8 (C, size, size).

    `fit` "stretch" resizes exactly; "crop" brings the shorter side to `size` and keeps the centre. Only paths are
    held; `load` gives all of them as one tensor, which is the faster `Source` wherever it fits in memory.
    """

    def __init__(self, paths: Sequence[Path], size: int, channels: int = 3, fit: Fit = "stretch") -> None:
        if channels not in (1, 3):
            raise ValueError(f"channels must be 1 or 3, not {channels}")
        self.paths, self.size, self.channels, self.fit = list(paths), size, channels, fit

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, indices: Tensor, /) -> Tensor:
        """indices (n,) int64 → images (n, C, size, size) uint8, in the order of the indices."""
        chosen = [self.paths[index] for index in indices.tolist()]
        if not chosen:
            return torch.empty((0, self.channels, self.size, self.size), dtype=torch.uint8)
        return torch.from_numpy(np.stack(threaded(self._decode, chosen)))

    def load(self) -> Tensor:
        """All images, (N, C, size, size) uint8."""
        return self[torch.arange(len(self))]

    def _decode(self, path: Path) -> NDArray[np.uint8]:
        return decode(path, self.size, self.channels, self.fit)


def problems(paths: Sequence[Path], *, masks: bool = False) -> list[ImageError]:
    """Decode every file fully, as a mask or as an image, and say which cannot be used.

    So a folder is checked as a whole before anything starts.
    """
    found = threaded(partial(_problem, images.load_mask if masks else images.load), paths)
    return [error for error in found if error]


def _problem(read: Callable[[Path], object], path: Path) -> ImageError | None:
    try:
        read(path)
    except ImageError as error:
        return error
    return None


def threaded(work: Callable[[S], T], paths: Sequence[S]) -> list[T]:
    """Pillow decodes and resizes without the interpreter's lock, so threads suffice; order is kept."""
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 16)) as pool:
        return list(pool.map(work, paths))
