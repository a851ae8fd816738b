"""A run's folder: what it scores, with what, and the partitions that are finished, each one whole or not there."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from heapq import nlargest
from pathlib import Path
from typing import Any
from uuid import uuid4

from fcdd import outputs
from fcdd.batch import listing
from fcdd.batch.listing import Listing, Span
from fcdd.batch.tables import Format, encoded
from fcdd.errors import DataError
from fcdd.files import open_regular, told, write_atomically

SMALLEST, LARGEST, WANTED = 32, 1000, 1000  # items of a partition, and partitions where the items allow
WORST = 10
TRIES = 5  # an image that kills its worker must not do so for ever
RUN, MODEL, INPUTS, SUMMARY = "run.json", "model.onnx", "inputs.jsonl", "summary.json"
ENTRIES = (RUN, MODEL, INPUTS, SUMMARY, "part-*", ".part-*", ".tries-*")  # of a run's folder


@dataclass(frozen=True)
class Run:
    """A folder and what its partitions are made from."""

    folder: Path
    listing: Listing
    model: str  # SHA-256
    inputs: str  # SHA-256
    items: int
    size: int  # items of a partition: a function of `items` alone, so that every cluster cuts alike
    format: Format

    def identity(self) -> dict[str, str | int]:
        """What a restart must bring again."""
        names = ("model", "inputs", "items", "size", "format")
        return {name: getattr(self, name) for name in names}

    def part(self, span: Span) -> Path:
        return self.folder / f"part-{span.first // self.size:06}"

    @property
    def count(self) -> int:
        """Number of partitions."""
        return -(-self.items // self.size)

    def held(self, span: Span) -> int:
        """How many items the span has."""
        return min(self.size, self.items - span.first)

    def left(self) -> list[Span]:
        """The partitions that are not finished."""
        done = {path.name for path in self.folder.glob("part-*")}
        return [span for span in self.listing.spans(self.size) if self.part(span).name not in done]

    def begin(self, span: Span) -> None:
        """Take note that a worker is at the partition of `span`.

        Raises:
            DataError: so many have died of it that one of its images must be the reason.
        """
        with self._tries(span).open("ab") as file:
            file.write(b".")
            tries = file.tell()
        if tries > TRIES:
            raise DataError(
                f"{self.part(span).name}: {TRIES} workers died of it. Look at lines {span.first + 1} to "
                f"{span.first + self.held(span)} of {self.listing.path}, or at the memory of the machines"
            )

    def _tries(self, span: Span) -> Path:
        return self.folder / f".tries-{self.part(span).name}"

    def write(self, span: Span, rows: Sequence[dict[str, Any]], errors: Sequence[dict[str, Any]]) -> None:
        """Make the partition of `span` appear with all it holds. Whoever comes second, a worker that was taken for
        dead or one that does its task again, leaves the first one's."""
        draft = self.folder / f".{self.part(span).name}.{uuid4().hex}"
        draft.mkdir()
        try:
            write_atomically(draft / f"results.{self.format}", encoded(rows, self.format, "results"))
            if errors:
                write_atomically(draft / f"errors.{self.format}", encoded(errors, self.format, "errors"))
            write_atomically(draft / SUMMARY, json.dumps(_summary(rows, errors)).encode())
            try:
                draft.rename(self.part(span))
            except OSError:
                if not self.part(span).is_dir():
                    raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        self._tries(span).unlink(missing_ok=True)

    def summary(self) -> dict[str, Any]:
        """Sums over the finished partitions, also written to the run's folder."""
        sums: Counter[str] = Counter()
        verdicts: Counter[str] = Counter()
        worst: list[dict[str, Any]] = []
        for path in sorted(self.folder.glob("part-*")):
            part = summary_of(path)
            sums.update(scored=part["scored"], errors=part["errors"])
            verdicts.update(part["verdicts"])
            worst = nlargest(WORST, worst + part["worst"], key=lambda row: float(row["score"]))
        told = {"images": self.items, **sums, "verdicts": dict(verdicts), "worst": worst}
        write_atomically(self.folder / SUMMARY, json.dumps(told, indent=1).encode())
        return told


def summary_of(part: Path) -> dict[str, Any]:
    """What a finished partition says of itself."""
    found: dict[str, Any] = json.loads((part / SUMMARY).read_bytes())
    return found


def _summary(rows: Sequence[dict[str, Any]], errors: Sequence[dict[str, Any]]) -> dict[str, Any]:
    worst = nlargest(WORST, rows, key=lambda row: float(row["score"]))
    return {
        "scored": len(rows),
        "errors": len(errors),
        "verdicts": Counter(row["verdict"] for row in rows),
        "worst": [{name: row[name] for name in ("item", "file", "score", "p_value", "verdict")} for row in worst],
    }


def partition_size(items: int) -> int:
    """Small partitions keep every worker of a small run busy; large ones keep the files of a large run few."""
    return min(LARGEST, max(SMALLEST, -(-items // WANTED)))


@contextmanager
def opened(model: Path, inputs: Path, output: Path, format: Format, overwrite: bool) -> Iterator[Run]:
    """The run of `output`, new or to be gone on with, for this process alone.

    Raises:
        DataError: `output` holds something else, or a run with another model, input or format, and must not be
            overwritten; nothing to score.
        OutputError: `output` must not be written, or another process is at it.
    """
    draft = outputs.draft_of(output)
    with outputs.claimed_folder(output, inputs=[model, inputs]):
        try:
            if (output / RUN).is_file():
                _tidy(output)
            yield _settled(_drafted(model, inputs, draft, format), output, overwrite)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            if (output / RUN).is_file():
                _tidy(output)


def _tidy(output: Path) -> None:
    """Remove what workers that died have left in a run's folder."""
    for path in output.glob(".part-*"):
        shutil.rmtree(path, ignore_errors=True)
    for path in output.glob(".tries-*"):
        path.unlink()


def _drafted(model: Path, inputs: Path, draft: Path, format: Format) -> Run:
    """The run that is asked for, in a folder that is not yet in its place, with its own copy of the model: the
    user's may be replaced meanwhile, or lie where only this machine sees it."""
    with told(draft):
        draft.mkdir()
    if inputs.is_dir():
        listed = listing.of_folder(inputs, draft / INPUTS)
    elif inputs.is_file():
        listed = Listing.of_manifest(inputs)
    else:
        raise DataError(f"{inputs}: no such folder or manifest")
    fingerprint, items = listed.fingerprint()
    if not items:
        raise DataError(f"{inputs}: no images in it")
    with open_regular(model) as file:
        content = file.read()
    write_atomically(draft / MODEL, content)
    return Run(draft, listed, hashlib.sha256(content).hexdigest(), fingerprint, items, partition_size(items), format)


def _settled(draft: Run, output: Path, overwrite: bool) -> Run:
    """The draft moved to `output`, or the run that is there already if it is the same."""
    if overwrite or not output.exists():
        outputs.refuse_folder(output, overwrite)
        write_atomically(draft.folder / RUN, json.dumps(draft.identity(), indent=1).encode())
        outputs.mark(draft.folder, ENTRIES)
        outputs.put(draft.folder, output)
    elif not (output / RUN).is_file():
        raise DataError(f"{output}: exists and is no run of this kind. Choose another -o, or pass --overwrite")
    else:
        before = json.loads((output / RUN).read_bytes())
        changed = [name for name, value in draft.identity().items() if before.get(name) != value]
        if changed:
            raise DataError(
                f"{output}: holds a run with another {', '.join(changed)}. Choose another -o, or pass --overwrite"
            )
    folder = output.absolute()
    ours = draft.listing.path.parent == draft.folder.absolute()
    listed = replace(draft.listing, path=folder / INPUTS) if ours else draft.listing
    return replace(draft, folder=folder, listing=listed)
