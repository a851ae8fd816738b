"""Images on disk as a `Source`: decoded on demand, in threads, at one size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fcdd import images
from fcdd.images import Fit
from fcdd.reading import threaded


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
