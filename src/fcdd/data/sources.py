"""Encoded or decoded images as one `Source` of tensors: read on demand, in threads, at one shape."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fcdd import images
from fcdd.images import Fit
from fcdd.reading import ImageLike, pixels, threaded

KEPT = 512 * 2**20  # bytes of decoded images


class Images:
    """Images as a `Source` of uint8 (channels, height, width).

    Each is a path, the bytes of an image file, or an array (H, W, 3) or (H, W) of uint8. These are held, and of the
    images at their shape as many as fit into `KEPT` bytes: those are decoded once. `load` gives all images as one
    tensor.
    """

    def __init__(
        self, given: Sequence[ImageLike], shape: int | tuple[int, int], channels: int = 3, fit: Fit = "stretch"
    ) -> None:
        """`shape` is (height, width), or one side of a square; one channel is the ITU-R 601 luma.

        `fit` "stretch" resizes both sides exactly; "crop" keeps the proportions and the centre, and cuts off what
        does not fit into the shape.
        """
        if channels not in (1, 3):
            raise ValueError(f"channels must be 1 or 3, not {channels}")
        self.given, self.channels, self.fit = list(given), channels, fit
        self.shape = (shape, shape) if isinstance(shape, int) else shape
        self._kept: dict[int, NDArray[np.uint8]] = {}

    @property
    def paths(self) -> list[Path]:
        """The files among the images; bytes and arrays have none."""
        return [Path(one) for one in self.given if isinstance(one, str | Path)]

    def __len__(self) -> int:
        return len(self.given)

    def __getitem__(self, indices: Tensor, /) -> Tensor:
        """indices (n,) int64 → images (n, channels, height, width) uint8, in the order of the indices."""
        if not len(indices):
            return torch.empty((0, self.channels, *self.shape), dtype=torch.uint8)
        return torch.from_numpy(np.stack(threaded(self._one, indices.tolist())))

    def load(self) -> Tensor:
        """All images, (N, channels, height, width) uint8."""
        return torch.from_numpy(np.stack(threaded(self._decode, self.given))) if self.given else self[torch.arange(0)]

    def _one(self, index: int) -> NDArray[np.uint8]:
        found = self._kept.get(index)
        if found is None:
            found = self._decode(self.given[index])
            if (len(self._kept) + 1) * found.nbytes <= KEPT:
                self._kept[index] = found
        return found

    def _decode(self, one: ImageLike) -> NDArray[np.uint8]:
        decoded = pixels(one)
        if self.channels == 1:
            return images.resize(images.luma(decoded), self.shape, self.fit)[None]
        return np.ascontiguousarray(images.resize(decoded, self.shape, self.fit).transpose(2, 0, 1))
