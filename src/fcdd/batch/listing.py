"""What is to be scored, as a file with one image a line: read in constant memory, cut into spans of whole lines."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from fcdd import images
from fcdd.errors import DataError
from fcdd.files import open_regular, write_atomically

Kind = Literal["text", "csv", "jsonl"]
KINDS: dict[str, Kind] = {".txt": "text", ".csv": "csv", ".jsonl": "jsonl"}
NAMES = ("path", "file")  # of the column or key that holds the path, the first that is there
BOM = b"\xef\xbb\xbf"


class Entry(NamedTuple):
    """One line: the `item`-th that is not blank, and the path as it stands there."""

    item: int
    file: str


class Span(NamedTuple):
    """Bytes [start, stop) of a listing, whole lines; `first` is the item of the first, `check` the bytes' CRC-32."""

    first: int
    start: int
    stop: int
    check: int


@dataclass(frozen=True)
class Listing:
    """A manifest, with what its lines are relative to."""

    path: Path
    root: Path
    kind: Kind
    column: int = 0  # of a CSV

    @staticmethod
    def of_manifest(path: Path) -> Listing:
        """A user's file, by its suffix. A CSV says in its first line which column is the path."""
        if path.suffix.lower() not in KINDS:
            raise DataError(f"{path}: a manifest is a .txt, .csv or .jsonl with one path per line, or give a folder")
        kind, column = KINDS[path.suffix.lower()], 0
        if kind == "csv":
            with open_regular(path) as file:
                header = [name.strip().lower() for name in _cells(_text(file.readline()))]
            found = [header.index(name) for name in NAMES if name in header]
            if not found:
                raise DataError(f"{path}: its first line must name the columns, one of them {' or '.join(NAMES)}")
            column = found[0]
        return Listing(path.absolute(), path.absolute().parent, kind, column)

    def fingerprint(self) -> tuple[str, int]:
        """SHA-256 of the file, and its number of items."""
        sha, items = hashlib.sha256(), 0
        with open_regular(self.path) as file:
            for line in file:
                sha.update(line)
                items += not line.isspace()
        return sha.hexdigest(), items - (self.kind == "csv")

    def spans(self, size: int) -> Iterator[Span]:
        """Spans of `size` items each, the last perhaps of fewer, in order and without gaps."""
        with open_regular(self.path) as file:
            start = len(file.readline()) if self.kind == "csv" else 0
            items, held, check = 0, 0, 0
            stop = start
            for line in file:
                stop, check = stop + len(line), zlib.crc32(line, check)
                held += not line.isspace()
                if held == size:
                    yield Span(items, start, stop, check)
                    items, held, check, start = items + held, 0, 0, stop
            if held:
                yield Span(items, start, stop, check)

    def read(self, span: Span) -> Iterator[tuple[Entry, str]]:
        """The entries of a span, each with its absolute path, or "" where the line holds none.

        Raises:
            DataError: the file is no longer what the span was made from.
        """
        with open_regular(self.path) as file:
            file.seek(span.start)
            content = file.read(span.stop - span.start)
        if zlib.crc32(content) != span.check:
            raise DataError(f"{self.path}: changed while it was being read. Start again with --overwrite")
        lines = (line for line in content.split(b"\n") if line and not line.isspace())
        for item, line in enumerate(lines, span.first):
            text = _text(line)
            file_name = self._path(text)
            yield Entry(item, file_name or text), str(self.root / file_name) if file_name else ""

    def _path(self, text: str) -> str:
        if self.kind == "text":
            return text
        if self.kind == "csv":
            cells = _cells(text)
            return cells[self.column] if self.column < len(cells) else ""
        try:
            value: Any = json.loads(text)
        except (ValueError, RecursionError):
            return ""
        if isinstance(value, dict):
            value = next((value[name] for name in NAMES if name in value), "")
        return value if isinstance(value, str) else ""


def of_folder(root: Path, path: Path) -> Listing:
    """List the images below `root` into a new file `path`: names, sizes and times, so that a change is noticed.

    All names are held in memory, about 1 kB each while they are sorted; beyond some millions, write a manifest.
    """
    rows = ({"path": str(image.relative_to(root)), **_facts(image)} for image in images.find(root))
    write_atomically(path, (json.dumps(row).encode() + b"\n" for row in rows))
    return Listing(path.absolute(), root.absolute(), "jsonl")


def _facts(image: Path) -> dict[str, int]:
    try:
        found = os.stat(image)
    except OSError:  # a broken link; reading it will say so
        return {}
    return {"bytes": found.st_size, "modified": found.st_mtime_ns}


def _text(line: bytes) -> str:
    """Names that are not UTF-8 keep their bytes, as in os.fsdecode."""
    return line.removeprefix(BOM).rstrip(b"\r\n").decode("utf-8", "surrogateescape")


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []
