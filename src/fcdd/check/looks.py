"""Every file decoded once and reduced to what the rules compare; pixels are not kept."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fcdd import images
from fcdd.check.container import identify
from fcdd.check.diagnosis import MASKS
from fcdd.check.folders import Folders
from fcdd.detector.looks import measure
from fcdd.errors import ImageError
from fcdd.progress import bar

SIDE, THUMB = 256, 64  # pixels: where traits are measured, and of a thumbnail


@dataclass(frozen=True, eq=False)
class Look:
    """One decoded image, reduced."""

    path: Path
    name: str
    group: str
    size: tuple[int, int]  # (H, W)
    digest: bytes  # of pixels and size: equal for equal images, however they were saved
    gray: bool
    traits: NDArray[np.float64]  # (7,), see `fcdd.detector.looks.measure`; all at 256², so that sizes compare
    thumb: NDArray[np.uint8]  # luma (64, 64)
    content: str  # format by content where the suffix says otherwise, else ""
    jpeg_quality: int  # 100 for everything else


class Mark(NamedTuple):
    """One decoded mask; `share` of its pixels are anomalous."""

    path: Path
    size: tuple[int, int]
    share: float


def names(looks: Iterable[Look]) -> tuple[str, ...]:
    """What the images are called in findings."""
    return tuple(look.name for look in looks)


def examine(
    folders: Folders, files: dict[str, list[Path]], *, quiet: bool
) -> tuple[list[Look], list[Mark], list[ImageError]]:
    """Images, masks and what cannot be read of `files`, the paths of each group, in their order."""
    jobs = [(group, path) for group, found in files.items() for path in found]
    seen: list[Look | Mark | ImageError] = []
    # Pillow, hashing and numpy release the interpreter's lock on arrays, so threads suffice.
    with bar("checking", len(jobs), quiet=quiet) as progress, ThreadPoolExecutor(min(os.cpu_count() or 1, 16)) as pool:
        for result in pool.map(partial(_see, folders), jobs):
            seen.append(result)
            progress.advance(1)
    return (
        [look for look in seen if isinstance(look, Look)],
        [mark for mark in seen if isinstance(mark, Mark)],
        [error for error in seen if isinstance(error, ImageError)],
    )


def _see(folders: Folders, job: tuple[str, Path]) -> Look | Mark | ImageError:
    group, path = job
    try:
        if group == MASKS:
            mask = images.load_mask(path)
            return Mark(path, (mask.shape[0], mask.shape[1]), float(mask.mean()))
        pixels = images.load(path)
        content, quality = identify(path)
    except ImageError as error:
        return error
    except OSError as error:  # the file went away between the two reads
        return ImageError(path, f"cannot be opened: {error.strerror}", "Check the path and its permissions.")
    red, green, blue = (pixels[:, :, channel] for channel in range(3))
    size = (pixels.shape[0], pixels.shape[1])
    digest = hashlib.blake2b(pixels.data, digest_size=16, person=f"{size[0]}x{size[1]}".encode()).digest()
    gray = bool(np.array_equal(red, green) and np.array_equal(green, blue))
    thumb = images.resize(images.luma(pixels), THUMB)
    traits = measure(images.resize(pixels, SIDE))
    return Look(path, folders.name(path), group, size, digest, gray, traits, thumb, content, quality)
