"""A user's images, as files, as bytes or as arrays: looked at, named and read in threads. Needs no torch."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from fcdd import images
from fcdd.errors import ImageError
from fcdd.files import open_regular

S = TypeVar("S")
T = TypeVar("T")
ImageLike = str | Path | bytes | NDArray[np.uint8]


def pixels(image: ImageLike) -> NDArray[np.uint8]:
    """RGB uint8 (H, W, 3) of a file, of encoded bytes, or of an array that is RGB or grey already."""
    if not isinstance(image, np.ndarray):
        return images.load(image)
    if image.dtype != np.uint8 or image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] != 3):
        raise ImageError("array", f"{image.dtype} {image.shape}", "Give uint8 of shape (H, W, 3) or (H, W)")
    return image if image.ndim == 3 else np.repeat(image[..., None], 3, 2)


def shape_of(image: ImageLike) -> tuple[int, int]:
    """Height and width, from a file's header where there is one."""
    return (image.shape[0], image.shape[1]) if isinstance(image, np.ndarray) else images.size(image)


def name_of(image: ImageLike, index: int) -> str:
    return str(image) if isinstance(image, str | Path) else f"image {index}"


def digest(image: ImageLike) -> str:
    """SHA-256 of a file's bytes or an array's values: the same image has the same digest under any name."""
    if isinstance(image, np.ndarray):
        return hashlib.sha256(f"{image.shape}".encode() + np.ascontiguousarray(image).tobytes()).hexdigest()
    if isinstance(image, bytes):
        return hashlib.sha256(image).hexdigest()
    try:
        with open_regular(image) as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError as error:
        raise ImageError(image, f"cannot be opened: {error.strerror}", "Check the path.") from error


def stream(
    sources: Iterable[ImageLike], work: Callable[[list[ImageLike]], list[T]], count: int, workers: int
) -> Iterator[T]:
    """`work` on batches of up to `count` images in `workers` threads; what it returns, in the images' order.

    No more than one batch beyond those in work is held in memory.
    """
    remaining = iter(sources)
    batches = iter(lambda: list(itertools.islice(remaining, count)), [])
    waiting: deque[Future[list[T]]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        for batch in batches:
            waiting.append(pool.submit(work, batch))
            if len(waiting) > workers:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()


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
