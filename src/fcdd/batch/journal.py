"""The log of a watched folder: a line for every image judged, kept whatever ends the process; the same as a table."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fcdd.errors import OutputError
from fcdd.files import told, utf8, write_atomically
from fcdd.report.inspection import spreadsheet_cell

LINES, TABLE = "log.jsonl", "log.csv"
COLUMNS = ("time", "file", "verdict", "score", "p_value", "regions", "placed", "overlay", "error", "model")

Entry = Mapping[str, Any]
Stamp = tuple[str, int, int]  # name, bytes and time of the last change in nanoseconds: which image it was


class Journal:
    """The log in a folder. What is appended is on the disk when `append` returns."""

    def __init__(self, folder: Path) -> None:
        """Read what is there; a last line that a kill left unfinished is removed, and the table is written anew.

        Raises:
            OutputError: the log is damaged elsewhere, or cannot be written.
        """
        self.folder = folder
        self.known: set[Stamp] = set()
        self.taken: set[str] = set()  # places of images and overlays
        self.last: Entry | None = None
        self.count = 0
        write_atomically(folder / TABLE, itertools.chain([utf8(_row(COLUMNS))], self._read(folder / LINES)))

    def append(self, entry: Entry) -> None:
        self._add(LINES, json.dumps(entry) + "\n")
        self._remember(entry)
        self._add(TABLE, _table_row(entry))

    def _read(self, path: Path) -> Iterator[bytes]:
        """Remember the entries of the log, one after the other, and give them as rows of the table."""
        if not path.exists():
            return
        whole = 0
        with path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                try:
                    entry = json.loads(line)
                    self._remember(entry)
                    yield utf8(_table_row(entry))
                except (ValueError, KeyError, TypeError) as error:
                    reason = f"line {self.count + 1} is damaged ({type(error).__name__}: {error})"
                    raise OutputError(f"{path}: {reason}. Move the file away, or choose another -o") from None
                whole += len(line)
        with told(path):
            os.truncate(path, whole)

    def _remember(self, entry: Entry) -> None:
        self.known.add(stamp_of(entry))
        self.taken |= {entry[key] for key in ("placed", "overlay") if entry[key]}
        self.last, self.count = entry, self.count + 1

    def _add(self, name: str, text: str) -> None:
        path = self.folder / name
        with told(path), path.open("ab") as file:
            file.write(utf8(text))
            file.flush()
            os.fsync(file.fileno())


def stamp_of(entry: Entry) -> Stamp:
    return entry["file"], entry["bytes"], entry["changed"]


def _table_row(entry: Entry) -> str:
    shown = {**entry, "regions": len(entry["regions"])}
    return _row(["" if shown[name] is None else spreadsheet_cell(str(shown[name])) for name in COLUMNS])


def _row(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue()
