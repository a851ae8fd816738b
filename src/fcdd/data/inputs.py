"""A user's pictures, as files or as arrays, at the one shape a detector works with."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fcdd import images
from fcdd.data.files import threaded
from fcdd.errors import ImageError

Picture = str | Path | bytes | NDArray[np.uint8]


def pixels(picture: Picture) -> NDArray[np.uint8]:
    """RGB uint8 (H, W, 3) of a file, of encoded bytes, or of an array that is RGB or grey already."""
    if not isinstance(picture, np.ndarray):
        return images.load(picture)
    if picture.dtype != np.uint8 or picture.ndim not in (2, 3) or (picture.ndim == 3 and picture.shape[2] != 3):
        raise ImageError("array", f"{picture.dtype} {picture.shape}", "Give uint8 of shape (H, W, 3) or (H, W)")
    return picture if picture.ndim == 3 else np.repeat(picture[..., None], 3, 2)


def shape_of(picture: Picture) -> tuple[int, int]:
    """Height and width, from a file's header where there is one."""
    return (picture.shape[0], picture.shape[1]) if isinstance(picture, np.ndarray) else images.size(picture)


def name_of(picture: Picture, index: int) -> str:
    return str(picture) if isinstance(picture, str | Path) else f"image {index}"


def digest(picture: Picture) -> str:
    """SHA-256 of a file's bytes or an array's values: the same picture has the same digest under any name."""
    if isinstance(picture, np.ndarray):
        return hashlib.sha256(f"{picture.shape}".encode() + np.ascontiguousarray(picture).tobytes()).hexdigest()
    content = picture if isinstance(picture, bytes) else Path(picture).read_bytes()
    return hashlib.sha256(content).hexdigest()


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


def stream(
    pictures: Iterable[Picture], shape: tuple[int, int], count: int
) -> Iterator[tuple[list[NDArray[np.uint8]], Tensor]]:
    """Batches of up to `count`: the original arrays, and the same at `shape` as uint8 (n, 3, height, width).

    Threads decode the next two batches while the caller works on this one; no more is held in memory.
    """

    def read(picture: Picture) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        array = pixels(picture)
        return array, resized(array, shape)

    waiting: deque[Future[tuple[NDArray[np.uint8], NDArray[np.uint8]]]] = deque()
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        remaining = iter(pictures)
        while True:
            while len(waiting) < 3 * count and (picture := next(remaining, None)) is not None:
                waiting.append(pool.submit(read, picture))
            if not waiting:
                return
            done = [waiting.popleft().result() for _ in range(min(count, len(waiting)))]
            yield [array for array, _ in done], torch.from_numpy(np.stack([small for _, small in done]))
