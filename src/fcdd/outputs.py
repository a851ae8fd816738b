"""What a command may write: never over its inputs, never over what fcdd did not make, and one process at a time."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from uuid import uuid4

from fcdd.errors import OutputError
from fcdd.files import draft_prefix, real, sync_folder, told, write_atomically

MARKER = ".fcdd.json"  # in every folder that fcdd made: which entries of the folder are its own
HIDDEN = ".fcdd-*"  # drafts and locks
RESULT = "result.json"  # written last, in a folder that a command can go on with
PATIENCE = 0.2  # seconds to wait for a lock: its last holder may just be going


@contextmanager
def claimed(outputs: Sequence[Path], *, inputs: Sequence[Path | None] = (), overwrite: bool = False) -> Iterator[None]:
    """Files that are this process's alone to write until the block ends.

    Raises:
        OutputError: two of the outputs are the same file, one of them is among `inputs`, is there already and must
            not be replaced, is no regular file, or is being written by another process.
    """
    if len({real(path) for path in outputs}) < len(outputs):
        raise OutputError(f"{outputs[0]}: two outputs would be this one file. Choose another -o")
    with ExitStack() as held:
        for path in sorted(outputs, key=real):
            for read in inputs:
                if read is not None and _same(path, read):
                    raise OutputError(f"{path}: is read by this command. Choose another -o")
            held.enter_context(_locked(real(path)))
        odd = [str(path) for path in outputs if path.exists() and not path.is_file()]
        if odd:
            raise OutputError(f"{', '.join(odd)}: is no regular file. Choose another -o")
        existing = [str(path) for path in outputs if path.exists()]
        if existing and not overwrite:
            raise OutputError(f"{', '.join(existing)} exists; choose another -o, or pass --overwrite")
        yield


@contextmanager
def together(outputs: Sequence[Path]) -> Iterator[Path]:
    """A hidden folder to write files of the names of `outputs` to, which lie side by side; they then take their places
    one right after the other, so that a kill leaves all old or all new ones but for an instant."""
    parent = outputs[0].parent
    draft = draft_of(outputs[0])
    try:
        with told(outputs[0]):
            draft.mkdir(parents=True)
        try:
            yield draft
        except OutputError as error:
            raise OutputError(str(error).replace(str(draft), str(parent))) from error
        for path in outputs:
            with told(path):
                _move(draft / path.name, real(path))
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    sync_folder(parent)


@contextmanager
def whole_folder(output: Path, *, inputs: Sequence[Path | None] = (), overwrite: bool = False) -> Iterator[Path]:
    """A new folder to be filled, which takes the place of `output` in one step when the block ends without an error.

    Raises:
        OutputError: as `claimed_folder` does.
    """
    with claimed_folder(output, inputs=inputs):
        refuse_folder(output, overwrite)
        draft = draft_of(output)
        with told(output):
            draft.mkdir(parents=True)
        try:
            yield draft
            mark(draft, sorted(path.name for path in draft.iterdir()))
            put(draft, output)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def claimed_folder(output: Path, *, inputs: Sequence[Path | None] = ()) -> Iterator[None]:
    """A folder that is this process's alone to write until the block ends; what killed processes left is removed.

    Raises:
        OutputError: it holds one of `inputs` or lies inside one, or another process is writing it.
    """
    place = real(output)
    for read in inputs:
        if read is not None and (place == real(read) or place in real(read).parents):
            raise OutputError(f"{output}: holds {read}, which this command reads. Choose another -o")
        if read is not None and read.is_dir() and real(read) in place.parents:
            raise OutputError(f"{output}: lies inside {read}, which this command reads. Choose another -o")
    with _locked(place):
        yield


@contextmanager
def resumed_folder(
    output: Path,
    entries: Sequence[str],
    identity: str,
    *,
    inputs: Sequence[Path | None] = (),
    overwrite: bool = False,
) -> Iterator[Path]:
    """The folder to work in (see `working_folder`), so that a stopped command goes on with what is there.

    Where that is not `output` itself, it takes its place in one step when the block ends without an error; a kill or an
    error leaves both. With `overwrite`, what earlier attempts left is removed first.

    Raises:
        OutputError: as `claimed_folder` does, or it holds more than the `entries`, patterns, that the command makes.
    """
    with claimed_folder(output, inputs=inputs):
        refuse_folder(output, overwrite=True)
        work = working_folder(output, identity, overwrite)
        if overwrite:
            for left in real(output).parent.glob(f"{_work_prefix(real(output))}*"):
                discard(left)
            if work == output and output.exists():
                discard(output)
        if not (work / MARKER).exists():
            mark(work, entries)
        yield work
        if work != output:
            put(work, output)
            shutil.rmtree(work, ignore_errors=True)


def working_folder(output: Path, identity: str, overwrite: bool) -> Path:
    """Where a command that can be resumed writes: `output`, or a hidden folder beside it while the old result is kept.

    Args:
        identity: all that determines the result. What was begun to replace an old one is gone on with only by a
            command of the same identity.
    """
    name = hashlib.sha256(identity.encode()).hexdigest()[:16]
    beside = real(output).with_name(f"{_work_prefix(real(output))}{name}")
    kept = (output / RESULT).exists() if overwrite else beside.exists()
    return beside if kept else output


@contextmanager
def kept_folder(
    output: Path, entries: Sequence[str], kept: Sequence[str], *, inputs: Sequence[Path | None] = ()
) -> Iterator[None]:
    """A folder that grows over many runs. Besides the `entries` that fcdd makes it has folders `kept`, in which other
    people's files are put; the marker does not name these, so that no command ever removes them.

    Raises:
        OutputError: as `claimed_folder` does, or it holds something else.
    """
    with claimed_folder(output, inputs=inputs):
        refuse_folder(output, overwrite=True, kept=kept if (output / MARKER).exists() else ())
        mark(output, entries)
        yield


def refuse_folder(output: Path, overwrite: bool, kept: Sequence[str] = ()) -> None:
    """OutputError where `output` is there already and must not be replaced: not asked for, or not made by fcdd.

    Entries named in `kept` may be there.
    """
    if output.exists() and not output.is_dir():
        raise OutputError(f"{output}: is a file, and a folder is to be written. Choose another -o")
    if output.exists() and not overwrite:
        raise OutputError(f"{output} exists; choose another -o, or pass --overwrite")
    strangers = [name for name in foreign(output) if name not in kept]
    if strangers:
        listed = ", ".join(strangers[:3]) + (f" and {len(strangers) - 3} more" if len(strangers) > 3 else "")
        raise OutputError(
            f"{output}: holds {listed}, which fcdd did not make and will not remove. "
            "Choose another -o, or move them away"
        )


def mark(folder: Path, entries: Sequence[str]) -> None:
    """Note in `folder` that fcdd made it, and which entries, as patterns, it may remove from it again."""
    about = "fcdd made this folder and may replace the entries listed here when it is told to overwrite."
    write_atomically(folder / MARKER, json.dumps({"about": about, "entries": list(entries)}).encode())


def foreign(folder: Path) -> list[str]:
    """The entries of `folder` that fcdd did not make; of a folder without a readable marker, all."""
    if not folder.is_dir():
        return []
    try:
        known = [str(entry) for entry in json.loads((folder / MARKER).read_bytes())["entries"]]
    except (OSError, ValueError, KeyError, TypeError):
        known = []
    ours = [*known, MARKER, HIDDEN]
    return sorted(path.name for path in folder.iterdir() if not any(fnmatchcase(path.name, name) for name in ours))


def put(draft: Path, output: Path) -> None:
    """Let `draft` appear as `output`; what was there is then under the draft's name.

    A kill leaves the old folder or the new one: where the kernel cannot exchange two names in one step, the old folder
    is put back by the next process that claims `output`.
    """
    place = real(output)
    with told(output):
        refuse_folder(output, overwrite=True)  # somebody may have put something there since the command began
        if not place.exists():
            draft.rename(place)
        elif not _exchange(draft, place):
            aside = place.with_name(f"{_aside_prefix(place)}{uuid4().hex}")
            place.rename(aside)
            draft.rename(place)
            aside.rename(draft)
    sync_folder(place.parent)


def discard(output: Path) -> None:
    """Remove a folder of fcdd's, from under its name in one step."""
    place, aside = real(output), draft_of(output)
    with told(output):
        place.rename(aside)
    shutil.rmtree(aside, ignore_errors=True)


def draft_of(output: Path) -> Path:
    """A new hidden name beside `output`, on the same disk."""
    place = real(output)
    return place.with_name(f"{draft_prefix(place)}{uuid4().hex}")


def _move(draft: Path, place: Path) -> None:
    if draft.stat().st_dev == place.parent.stat().st_dev:
        os.replace(draft, place)
    else:  # `place` is where a link leads
        write_atomically(place, draft.read_bytes())


def _aside_prefix(place: Path) -> str:
    return f"{draft_prefix(place)}old-"


def _work_prefix(place: Path) -> str:
    return f"{draft_prefix(place)}work-"


def _exchange(one: Path, other: Path) -> bool:
    """Whether Linux has exchanged the two names in one step, which Python offers no function for."""
    swap = getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return swap is not None and swap(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0


def _same(one: Path, other: Path) -> bool:
    return real(one) == real(other) or (one.exists() and other.exists() and one.samefile(other))


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    """The lock of the output `place` is held during the block, and whatever killed processes left of it is removed."""
    from filelock import FileLock, Timeout

    lock = FileLock(place.with_name(f"{draft_prefix(place)}lock"))
    with told(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.exists()  # raises where the name is too long, which the lock's is not
        try:
            lock.acquire(timeout=PATIENCE, poll_interval=0.02)
        except Timeout:
            # filelock also waits where the file cannot be made at all.
            os.close(os.open(lock.lock_file, os.O_RDWR | os.O_CREAT))
            raise OutputError(
                f"{place}: another process is writing it. Wait until it has ended, or choose another -o"
            ) from None
    try:
        _recover(place)
        yield
    finally:
        # Removed while it is held: filelock sees that a lock it waited for has lost its name, and tries again.
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def _recover(place: Path) -> None:
    """Put back a folder that was set aside by a killed process, and remove drafts; unfinished work is kept."""
    aside = sorted(place.parent.glob(f"{_aside_prefix(place)}*"))
    if aside and not place.exists():
        aside.pop(0).rename(place)
    for path in place.parent.glob(f"{draft_prefix(place)}*"):
        if path.name.startswith(_work_prefix(place)):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif not path.name.endswith("-lock"):
            path.unlink(missing_ok=True)
