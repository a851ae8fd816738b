"""Progress of long work: a live bar on a terminal, a line now and then elsewhere. On stderr, so stdout stays clean."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

LINE_EVERY = 15.0  # seconds between lines where there is no terminal


class Bar:
    """Advances by items done; `note` is shown beside the bar."""

    def __init__(self, title: str, total: int, done: int, live: Progress | None) -> None:
        self.title, self.total, self.done, self.live = title, total, done, live
        self.begun = self.last = time.monotonic()
        self.fresh = 0  # items of this session, for the throughput: resumed work was not done now
        self.task = live.add_task(title, total=total, completed=done, note="") if live else None

    def advance(self, items: int, note: str = "") -> None:
        self.done += items
        self.fresh += items
        now = time.monotonic()
        rate = self.fresh / max(now - self.begun, 1e-9)
        note = f"{rate:.3g}/s {note}".strip()
        if self.live is not None and self.task is not None:
            self.live.update(self.task, completed=self.done, note=note)
        elif now - self.last >= LINE_EVERY:
            self.last = now
            left = (self.total - self.done) / max(rate, 1e-9)
            print(f"{self.title}: {self.done}/{self.total} {note}, {left:.0f} s left", file=sys.stderr, flush=True)


@contextmanager
def bar(title: str, total: int, done: int = 0, *, quiet: bool = False) -> Iterator[Bar]:
    """A progress bar for `total` items, of which `done` were finished before."""
    console = Console(stderr=True, quiet=quiet)
    if not console.is_terminal or quiet:
        silent = Bar(title, total, done, None)
        if quiet:
            silent.last = float("inf")
        yield silent
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[note]}"))
    with Progress(*columns, TimeRemainingColumn(), console=console) as live:
        yield Bar(title, total, done, live)


@contextmanager
def only_errors_of(logger: str) -> Iterator[None]:
    """Only errors of the named logger ("" is the root) are told during the block; its level is then as before."""
    chosen = logging.getLogger(logger)
    before = chosen.level
    chosen.setLevel(logging.ERROR)
    try:
        yield
    finally:
        chosen.setLevel(before)
