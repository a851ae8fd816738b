"""A folder in which images keep appearing: each is judged once, written to a log and sorted by its verdict.

The folder is looked through every few seconds. Notices of the system (inotify) would be quicker, but there are none for
what another machine writes to a network share, and a notice that is lost would be a part that is lost.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

from fcdd import images
from fcdd.batch.journal import LINES, TABLE, Entry, Journal, Stamp, stamp_of
from fcdd.detector import load
from fcdd.detector.calibration import Verdict
from fcdd.detector.judge import Judge
from fcdd.errors import ImageError, OutputError
from fcdd.files import real, told, write_atomically
from fcdd.outputs import kept_folder
from fcdd.reading import digest
from fcdd.report import inspection

Way = Literal["link", "copy", "move"]
WAYS: tuple[Way, ...] = get_args(Way)
OVERLAYS = "overlays"
NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS)


@dataclass(frozen=True)
class Pace:
    """Seconds: between two looks at the folder; without a change until a file counts as completely written; and until
    one that still cannot be read is given up."""

    every: float = 1.0
    settle: float = 2.0
    patience: float = 30.0


@dataclass
class Watcher:
    """Judges what appears in `inputs` and sorts it into `output`; `watching` makes one."""

    detector: Judge
    model: str  # name and fingerprint, for the log
    inputs: Path
    output: Path
    way: Way
    pace: Pace
    journal: Journal
    seen: dict[str, tuple[Stamp, float]] = field(default_factory=dict)  # files to be judged, and since when unchanged

    def look(self, stop: threading.Event, tell: Callable[[Entry], None]) -> bool:
        """Judge every file that is complete; whether some are still to be waited for."""
        now, present = time.monotonic(), self._present()
        self.seen = {name: self.seen[name] for name in present if name in self.seen}
        for name, stamp in present.items():
            if stop.is_set():
                break
            if name not in self.seen or self.seen[name][0] != stamp:
                self.seen[name] = (stamp, now)
            quiet = now - self.seen[name][1]
            if quiet < self.pace.settle:
                continue
            entry = self._judged(stamp, last_chance=quiet >= self.pace.patience)
            if entry is not None:
                self.journal.append(entry)
                self._place(entry)
                del self.seen[name]
                tell(entry)
        return bool(self.seen)

    def finish(self) -> None:
        """Sort the last image of the log, where a kill came between the log and that."""
        last = self.journal.last
        if last is not None and last["placed"] and _stamp(self.inputs, last["file"]) == stamp_of(last):
            self._place(last)

    def _present(self) -> dict[str, Stamp]:
        """Images in the folder that are not in the log; none while it cannot be reached, as a share may be."""
        if not self.inputs.is_dir():
            return {}
        names = [str(path.relative_to(self.inputs)) for path in images.find(self.inputs)]
        stamps = {name: _stamp(self.inputs, name) for name in names}
        return {name: stamp for name, stamp in stamps.items() if stamp and stamp not in self.journal.known}

    def _judged(self, stamp: Stamp, last_chance: bool) -> Entry | None:
        """What is found of an image; None where it changed meanwhile, or cannot be read yet."""
        name, path = stamp[0], self.inputs / stamp[0]
        found: dict[str, Any] = {"verdict": None, "score": None, "p_value": None, "regions": []}
        places: dict[str, str | None] = {"placed": None, "overlay": None, "error": None}
        try:
            array = images.load(path)
            if _stamp(self.inputs, name) != stamp:
                return None
        except ImageError as error:
            if not last_chance or not path.exists():
                return None
            places["error"] = str(error)
        else:
            (result,) = self.detector.predict_arrays([array])
            found = result.to_dict()
            places["placed"] = self._free(f"{result.verdict}/{name}")
            if result.verdict is not Verdict.OK:
                places["overlay"] = self._overlay(str(places["placed"]))
                drawn = inspection.explained(self.detector, array, result)
                images.save_png(drawn, self.output / str(places["overlay"]), fast=True)
        judged = datetime.now().astimezone().isoformat(timespec="milliseconds")
        identity = {"time": judged, "file": name, "bytes": stamp[1], "changed": stamp[2]}
        return {**identity, **found, **places, "model": self.model}

    def _free(self, wanted: str) -> str:
        """The place for an image, or with ~2, ~3 … after its stem where another image of that name was put before."""
        place, number = Path(wanted), 1
        while str(place) in self.journal.taken or os.path.lexists(self.output / place):
            number += 1
            place = Path(wanted).with_stem(f"{Path(wanted).stem}~{number}")
        return str(place)

    def _overlay(self, placed: str) -> str:
        plain = str(Path(OVERLAYS, placed).with_suffix(".png"))
        return plain if plain not in self.journal.taken else f"{OVERLAYS}/{placed}.png"

    def _place(self, entry: Entry) -> None:
        """Put an image where its log says, in one step; what is there already stays."""
        if entry["placed"] is None:
            return
        source, target = self.inputs / entry["file"], self.output / entry["placed"]
        if _stamp(self.inputs, entry["file"]) != stamp_of(entry):
            return  # replaced or taken away since: what is there now is another image, to be judged by itself
        with told(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            if not os.path.lexists(target):
                self._put(source, target)
        if self.way == "move":
            with told(source):
                source.unlink(missing_ok=True)

    def _put(self, source: Path, target: Path) -> None:
        same_disk = os.stat(source).st_dev == os.stat(target.parent).st_dev
        if self.way == "move" and same_disk and not source.is_symlink():
            source.rename(target)
        elif self.way == "link":
            try:
                os.link(real(source), target)
            except OSError as error:
                if error.errno not in NO_LINKS:
                    raise
                raise OutputError(
                    f"{target}: cannot be a link to {source} ({error.strerror}). Choose --place copy or --place move"
                ) from None
        else:
            write_atomically(target, source.read_bytes())
            shutil.copystat(source, target)


@contextmanager
def watching(model: Path, inputs: Path, output: Path, way: Way, pace: Pace, threads: int = 0) -> Iterator[Watcher]:
    """A watcher of `inputs` that goes on where an earlier one with the same `output` ended, however that was.

    Raises:
        OutputError: `output` holds what fcdd did not make, lies in `inputs`, or another watcher writes it.
    """
    images.find(inputs)  # raises where there is no such folder
    sorted_by = [str(verdict) for verdict in Verdict]
    with kept_folder(output, [LINES, TABLE, OVERLAYS], sorted_by, inputs=[model, inputs]):
        watcher = Watcher(
            detector=load(model, threads),
            model=f"{model.name} {digest(model)[:16]}",
            inputs=inputs,
            output=output,
            way=way,
            pace=pace,
            journal=Journal(output),
        )
        watcher.detector.calibration  # noqa: B018  raises where the model has none
        watcher.finish()
        yield watcher


def run(watcher: Watcher, once: bool, stop: threading.Event, tell: Callable[[Entry], None]) -> dict[str, Any]:
    """Judge until `stop` is set or, with `once`, until all that is there has been judged; what was done now."""
    before, verdicts, unreadable = watcher.journal.count, Counter[str](), list[str]()

    def done(entry: Entry) -> None:
        if entry["error"]:
            unreadable.append(entry["error"])
        else:
            verdicts[entry["verdict"]] += 1
        tell(entry)

    while not stop.is_set():
        waiting = watcher.look(stop, done)
        if once and not waiting:
            break
        stop.wait(watcher.pace.every)
    return {
        "output": str(watcher.output),
        "log": str(watcher.output / LINES),
        "images": verdicts.total(),
        "judged_before": before,
        "verdicts": dict(verdicts),
        "unreadable": unreadable,
    }


def _stamp(folder: Path, name: str) -> Stamp | None:
    """Which image lies there now; None where there is none any more."""
    try:
        state = os.stat(folder / name)
    except OSError:
        return None
    return name, state.st_size, state.st_mtime_ns
