"""Outputs: written whole or not at all, and never over what is there without being told to."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fcdd.errors import DataError


def write_atomically(path: Path, content: bytes) -> None:
    """Write beside `path`, flush to the disk, rename over it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def refuse_existing(outputs: Sequence[Path], overwrite: bool) -> None:
    """DataError where one of `outputs` is there already and may not be replaced."""
    existing = [str(path) for path in outputs if path.exists()]
    if existing and not overwrite:
        raise DataError(f"{', '.join(existing)} exists; choose another -o, or pass --overwrite")


@contextmanager
def whole_folder(output: Path) -> Iterator[Path]:
    """A folder that appears under its name only when it is complete."""
    part = output.with_name(f".{output.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        yield part
        if output.exists():
            shutil.rmtree(output)
        part.rename(output)
    finally:
        shutil.rmtree(part, ignore_errors=True)
