"""Files: only regular ones are read, and what is written appears whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from fcdd.errors import OutputError

_REMEDIES = {
    errno.ENOSPC: "Free space on the disk, or choose another place",
    errno.EDQUOT: "Free space within your quota, or choose another place",
    errno.EFBIG: "The file is larger than this disk or this process may write; choose another place",
    errno.ENAMETOOLONG: "Choose a shorter name",
}
_REMEDY = "Check that the folder is there and may be written to, or choose another place"


@contextmanager
def told(path: Path | str) -> Iterator[None]:
    """Any OSError of the block becomes an OutputError that names `path` and the remedy."""
    try:
        yield
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, _REMEDY)
        raise OutputError(f"{path}: cannot be written ({error.strerror or error}). {remedy}") from error


@contextmanager
def whole_file(path: Path | str, *, durable: bool = True) -> Iterator[BinaryIO]:
    """A new file that takes the place of `path` when the block ends without an error; else `path` stays as it was.

    Where `path` is a link, the file it points to is replaced. `durable` waits for the disk, so that a power cut also
    leaves the old file or the new one.

    Raises:
        OutputError: the folder cannot be written to, or the disk is full.
    """
    target = real(path)
    draft = target.with_name(f"{draft_prefix(target)}{uuid4().hex}")
    with told(path):
        target.parent.mkdir(parents=True, exist_ok=True)
        file = os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), "wb")
    try:
        try:
            yield file
            with told(path):
                file.flush()
                if durable:
                    os.fsync(file.fileno())
                file.close()
                os.replace(draft, target)
        finally:
            with suppress(OSError):  # what could not be written once cannot be flushed now either
                file.close()
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(target.parent)


def write_atomically(path: Path | str, content: bytes | Iterable[bytes], *, durable: bool = True) -> None:
    """Write `content`, whole or in pieces, as `whole_file` does."""
    with whole_file(path, durable=durable) as file, told(path):
        file.writelines([content] if isinstance(content, bytes) else content)


def open_regular(path: Path | str) -> BinaryIO:
    """Open a file for reading; OSError where it is a folder, a pipe or a device, which may never end or answer."""
    # Opening a pipe waits for its writer, unless told not to.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
    raise OSError(number, "a folder" if stat.S_ISDIR(mode) else "a pipe or a device, not a file", str(path))


def utf8(text: str) -> bytes:
    """UTF-8 for every text: the bytes of a file name that is not UTF-8 are written as `\\udcXX`."""
    return text.encode("utf-8", "backslashreplace")


def real(path: Path | str) -> Path:
    """The absolute path with all links followed, whether there is something or not."""
    return Path(os.path.realpath(path))


def draft_prefix(target: Path) -> str:
    """How the hidden names begin under which `target` is made. A hash, because the name itself may be too long."""
    return f".fcdd-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}-"


def sync_folder(folder: Path) -> None:
    """Have the disk keep a folder's entries. Some file systems cannot do that, and lose nothing but durability."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
