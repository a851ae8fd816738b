"""Batches side by side, one thread each: faster, and the same numbers whatever the number of threads.

A product that is spread over threads is added up in another order for each number of them, and its last digits differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import torch

S = TypeVar("S")
T = TypeVar("T")
_threads: ContextVar[int] = ContextVar("threads", default=0)


@contextmanager
def one_thread_each() -> Iterator[int]:
    """How many threads may work on batches of their own, each alone on its core, while the context lasts.

    That is half as fast again as all cores on one batch: the layers are too small to share. Within such a context,
    another gives the same number.
    """
    before = torch.get_num_threads()
    threads = _threads.get() or before
    torch.set_num_threads(1)
    token = _threads.set(threads)
    try:
        yield threads
    finally:
        _threads.reset(token)
        torch.set_num_threads(before)


def each(work: Callable[[S], T], items: Iterable[S]) -> list[T]:
    """`work` on every item without gradients, in threads; what it returns, in the items' order."""

    def alone(item: S) -> T:
        with torch.inference_mode():
            return work(item)

    with one_thread_each() as workers, ThreadPoolExecutor(workers) as pool:
        return list(pool.map(alone, items))
