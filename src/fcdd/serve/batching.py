"""Micro-batches: images that wait at the same time run through the network together."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fcdd.detector.result import Result

Array = NDArray[np.uint8]
Predict = Callable[[Sequence[Array]], list[Result]]


@dataclass(frozen=True)
class _Waiting:
    array: Array
    answer: asyncio.Future[Result]


class Batcher:
    """Answers images one at a time and computes them in batches, in threads of its own.

    Nothing waits for a batch to fill: what has gathered while the workers were busy is the next batch, divided among
    the workers that are free. One image alone is thus as quick as without batches, and a crowd is not slower. Its
    methods are called in the event loop's thread; how much may wait is for the caller to bound.
    """

    def __init__(self, predict: Predict, batch: int, workers: int, ran: Callable[[int], None]) -> None:
        """`ran` is told the size of every batch."""
        self._predict, self._batch, self._ran = predict, batch, ran
        self._waiting: deque[_Waiting] = deque()
        self._free = self._workers = workers
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="batch")
        self._running: set[asyncio.Task[None]] = set()

    async def predict(self, array: Array) -> Result:
        """The result of an RGB image (H, W, 3); cancelled, it leaves the queue."""
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(array, answer))
        # In the next turn of the loop: the images of a batch request come one right after the other.
        asyncio.get_running_loop().call_soon(self._start)
        return await answer

    async def close(self) -> None:
        """Finish what was taken, then end the threads."""
        while self._running or self._waiting:
            self._start()
            if self._running:
                await asyncio.wait(self._running)
        self._pool.shutdown()

    def _start(self) -> None:
        while self._free and (batch := self._next()):
            self._free -= 1
            task = asyncio.get_running_loop().create_task(self._compute(batch))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    def _next(self) -> list[_Waiting]:
        """A fair share for each free worker of those that still want an answer, first come first served."""
        self._waiting = deque(one for one in self._waiting if not one.answer.done())
        share = min(math.ceil(len(self._waiting) / self._free), self._batch)
        return [self._waiting.popleft() for _ in range(share)]

    async def _compute(self, batch: list[_Waiting]) -> None:
        self._ran(len(batch))
        arrays = [one.array for one in batch]
        try:
            results = await asyncio.get_running_loop().run_in_executor(self._pool, self._predict, arrays)
            for one, result in zip(batch, results, strict=True):
                if not one.answer.done():
                    one.answer.set_result(result)
        except Exception as error:  # a defect of the program: it belongs to those who wait for the answer
            for one in batch:
                if not one.answer.done():
                    one.answer.set_exception(error)
        finally:
            self._free += 1
            self._start()
