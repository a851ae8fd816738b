"""Scoring a collection of any size on a Ray cluster: every image once, whatever dies on the way.

Ray Data hands partitions, not images, to its pool of workers: it may run a task twice when a worker dies, and does
not remember a run when its driver dies. A partition that appears whole under its name, made from a fixed span of the
listing, may be computed twice and is still there once; and finished ones need not be computed again.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcdd import images
from fcdd.batch.cluster import connected, require
from fcdd.batch.listing import Entry, Span
from fcdd.batch.parts import MODEL, Run, opened, summary_of
from fcdd.batch.tables import FORMATS
from fcdd.detector.runtime import Runtime
from fcdd.errors import DataError, FcddError, ImageError, ModelError
from fcdd.interrupt import Interrupted
from fcdd.progress import bar, only_errors_of


def predict(
    model: Path,
    inputs: Path,
    output: Path,
    address: str = "",
    format: str = "parquet",
    overwrite: bool = False,
    threads: int = 0,
    quiet: bool = False,
) -> dict[str, Any]:
    """Score the images of a folder or a manifest with an exported model, and sum up what `output` then holds.

    Each worker has its own copy of the model and asks Ray for `threads` CPUs (0: one). Given again, it goes on with the
    partitions that are left. Ctrl-C and SIGTERM raise `Interrupted`.
    """
    require()
    if format not in FORMATS:
        raise DataError(f"--format {format}: choose {' or '.join(FORMATS)}")
    if model.suffix != ".onnx":
        raise ModelError(f"{model}: --on ray takes an exported model: fcdd export {model} -o {model.stem}.onnx")
    Runtime(model, threads=1)  # refuses a damaged one here, not on every worker
    with opened(model, inputs, output, format, overwrite) as run:
        left = run.left()
        fresh, begun = sum(run.held(span) for span in left), time.monotonic()
        if left:
            _score(run, left, address, max(1, threads), quiet)
        seconds = time.monotonic() - begun
        told = run.summary()
    if told["scored"] + told["errors"] != run.items:  # somebody else changed the folder meanwhile
        raise DataError(f"{output}: lacks some of its {run.items} items. Give the same command again")
    where = output / "part-*" / f"errors.{format}"
    return {
        "output": str(output),
        **told,
        "fresh": fresh,
        "images_per_second": fresh / seconds if fresh else 0.0,
        "skipped": [f"{told['errors']} that cannot be read, with the reason in {where}"] if told["errors"] else [],
    }


def _score(run: Run, left: list[Span], address: str, cpus: int, quiet: bool) -> None:
    """Have all partitions that are left written by workers with `cpus` CPUs each."""
    total = sum(run.held(span) for span in left)
    try:
        shown_bar = bar("scoring", run.items, run.items - total, quiet=quiet)
        with connected(address), shown_bar as shown, _terminable(), only_errors_of("ray.data"):
            for outcome in _dataset(run, left, cpus).iter_rows():
                if outcome["failure"]:
                    raise DataError(outcome["failure"])
                shown.advance(outcome["items"], f"{outcome['errors']} unreadable" if outcome["errors"] else "")
    except KeyboardInterrupt:
        raise Interrupted(
            f"stopped with {len(run.left())} of {run.count} partitions left. "
            "Go on with the same command, without --overwrite"
        ) from None


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt during the block: Ray's own handler would end the process without a word."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _dataset(run: Run, left: list[Span], cpus: int) -> Any:
    """The partitions that are left, one a block, and what the workers say of each when it is written."""
    import ray.data

    ray.data.DataContext.get_current().enable_progress_bars = False
    there = int(ray.cluster_resources().get("CPU", 0))
    if 0 < there < cpus:
        raise DataError(f"--threads {cpus}: the cluster has {there} CPUs")
    workers = max(1, min(len(left), there // cpus))
    return ray.data.from_items([span._asdict() for span in left], override_num_blocks=len(left)).map_batches(
        Worker,
        fn_constructor_args=(run, cpus),
        batch_size=1,
        # A cluster that grows gets more workers.
        compute=ray.data.ActorPoolStrategy(min_size=workers, max_size=len(left)),
        num_cpus=cpus,
    )


class Worker:
    """One copy of the model, in a process of its own on some node."""

    def __init__(self, run: Run, threads: int) -> None:
        self.run, self.threads = run, threads

    @cached_property
    def runtime(self) -> Runtime:
        return Runtime(self.run.folder / MODEL, threads=self.threads)

    def __call__(self, batch: dict[str, NDArray[np.int64]]) -> dict[str, list[Any]]:
        """Score and write the partition of one span; how many items it has, how many cannot be read, what is wrong."""
        span = Span(*(int(batch[name][0]) for name in Span._fields))
        try:
            if not self.run.part(span).is_dir():  # a task may come again after all was done
                self.run.begin(span)
                self.run.write(span, *self.score(span))
        except FcddError as error:  # as a value: Ray would wrap it
            return {"items": [0], "errors": [0], "failure": [str(error)]}
        sums = summary_of(self.run.part(span))
        return {"items": [sums["scored"] + sums["errors"]], "errors": [sums["errors"]], "failure": [""]}

    def score(self, span: Span) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """A row for each image of the span, and one with the reason for each that cannot be read."""
        readable: list[Entry] = []
        errors: list[dict[str, Any]] = []

        def arrays() -> Iterator[NDArray[np.uint8]]:
            for entry, path in self.run.listing.read(span):
                try:
                    if not path:
                        raise ImageError(entry.file, "no path in this line of the manifest")
                    array = images.load(path)
                    self.runtime.frame.check((array.shape[0], array.shape[1]), path)
                except ImageError as error:
                    errors.append({**entry._asdict(), "reason": error.reason})
                else:
                    readable.append(entry)
                    yield array

        # Streamed: while one batch is in the network, the next is read, and no more than that is held.
        results = [result.to_dict() for result in self.runtime.predict(arrays())]
        return [{**entry._asdict(), **result} for entry, result in zip(readable, results, strict=True)], errors
