"""A user's pictures, as files or as arrays, at the one shape a detector works with."""

from __future__ import annotations

import hashlib
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fcdd import images
from fcdd.data.files import threaded
from fcdd.errors import ImageError

T = TypeVar("T")
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
    pictures: Iterable[Picture], work: Callable[[list[Picture]], list[T]], count: int, workers: int
) -> Iterator[T]:
    """`work` on batches of up to `count` pictures in `workers` threads; what it returns, in the pictures' order.

    No more than one batch beyond those in work is held in memory.
    """
    remaining = iter(pictures)
    batches = iter(lambda: list(itertools.islice(remaining, count)), [])
    waiting: deque[Future[list[T]]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        for batch in batches:
            waiting.append(pool.submit(work, batch))
            if len(waiting) > workers:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()
