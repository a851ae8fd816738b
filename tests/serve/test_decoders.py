"""Decoder processes: replaced when a job costs one, and known when none works."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable

import numpy as np
import pytest

from fcdd.serve import decoders as module
from fcdd.serve.decoders import Decoders
from fcdd.serve.limits import Limits, Refusal

from .hostile import exif_segments, tiny_tiles
from .running import encoded

GOOD = encoded(np.full((8, 6, 3), 77, np.uint8))


def with_decoders(work: Callable[[Decoders], Awaitable[None]], limits: Limits | None = None, count: int = 1) -> None:
    async def main() -> None:
        decoders = Decoders(limits or Limits(), count)
        await decoders.start()
        try:
            await work(decoders)
        finally:
            await decoders.close()
        assert not decoders.working

    asyncio.run(main())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


def test_an_image_is_decoded() -> None:
    async def work(decoders: Decoders) -> None:
        found = await decoders.image(GOOD, (3, 5))
        assert found.size == (8, 6)
        assert (found.pixels == np.full((3, 5, 3), 77)).all()

    with_decoders(work)


@pytest.mark.parametrize("content", [exif_segments(31_000_000), tiny_tiles(1960)], ids=["time", "memory"])
def test_a_hostile_image_is_refused_and_the_next_is_decoded(content: bytes) -> None:
    async def work(decoders: Decoders) -> None:
        with pytest.raises(Refusal) as refused:
            await decoders.image(content, (3, 5))
        assert refused.value.status == 422
        assert (await decoders.image(GOOD, (3, 5))).size == (8, 6)

    with_decoders(work)


def test_others_are_decoded_meanwhile() -> None:
    async def work(decoders: Decoders) -> None:
        hostile = asyncio.create_task(decoders.image(exif_segments(31_000_000), (3, 5)))
        longest = 0.0
        while not hostile.done():
            begun = time.monotonic()
            await decoders.image(GOOD, (3, 5))
            longest = max(longest, time.monotonic() - begun)
        assert longest < 3  # on an idle machine far below one
        with pytest.raises(Refusal):
            await hostile

    with_decoders(work, count=2)


def processes(decoders: Decoders) -> set[int]:
    return {process.pid for process in decoders._alive}


def test_a_process_that_hangs_costs_its_job_and_is_replaced() -> None:
    async def work(decoders: Decoders) -> None:
        (first,) = processes(decoders)
        os.kill(first, signal.SIGSTOP)
        with pytest.raises(Refusal) as refused:
            await decoders.image(GOOD, (3, 5))
        assert refused.value.status == 504
        await until(lambda: decoders.working)
        assert first not in processes(decoders)
        assert (await decoders.image(GOOD, (3, 5))).size == (8, 6)
        assert decoders.restarts == 1

    with_decoders(work, Limits(seconds=1))


def test_a_process_that_dies_idle_is_replaced_and_costs_no_job() -> None:
    async def work(decoders: Decoders) -> None:
        (first,) = processes(decoders)
        os.kill(first, signal.SIGKILL)
        await until(lambda: decoders.restarts == 1 and decoders.working)
        assert (await decoders.image(GOOD, (3, 5))).size == (8, 6)

    with_decoders(work)


def test_jobs_that_nobody_waits_for_are_not_done() -> None:
    async def work(decoders: Decoders) -> None:
        (process,) = processes(decoders)
        os.kill(process, signal.SIGSTOP)
        busy = asyncio.create_task(decoders.image(GOOD, (3, 5)))
        given_up = [asyncio.create_task(decoders.image(exif_segments(31_000_000), (3, 5))) for _ in range(4)]
        await asyncio.sleep(0.1)
        for task in given_up:
            task.cancel()
        os.kill(process, signal.SIGCONT)
        await busy
        assert (await decoders.image(GOOD, (3, 5))).size == (8, 6)
        assert decoders.restarts == 0

    with_decoders(work)


def test_where_no_process_starts_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "START_SECONDS", 0.5)
    monkeypatch.setattr(module.sys, "executable", "/nowhere/python")

    async def main() -> None:
        with pytest.raises(RuntimeError, match="no decoder"):
            await Decoders(Limits(), 1).start()

    asyncio.run(main())
