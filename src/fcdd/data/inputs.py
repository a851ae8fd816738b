"""A user's pictures at the one shape a detector works with, as a `Source` of tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fcdd import images
from fcdd.reading import Picture, pixels, threaded


class Inputs:
    """Pictures as a `Source` of uint8 (3, height, width), decoded on demand in threads."""

    def __init__(self, pictures: Sequence[Picture], shape: tuple[int, int]) -> None:
        self.pictures, self.shape = list(pictures), shape

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, indices: Tensor, /) -> Tensor:
        chosen = [self.pictures[index] for index in indices.tolist()]
        if not chosen:
            return torch.empty((0, 3, *self.shape), dtype=torch.uint8)
        return torch.from_numpy(np.stack(threaded(self._resized, chosen)))

    def _resized(self, picture: Picture) -> NDArray[np.uint8]:
        return resized(pixels(picture), self.shape)


def resized(array: NDArray[np.uint8], shape: tuple[int, int]) -> NDArray[np.uint8]:
    """RGB (H, W, 3) → (3, height, width), bilinear and antialiased."""
    return np.ascontiguousarray(images.resize(array, shape).transpose(2, 0, 1))
