"""Processes that decode what clients sent, each replaced when a job has cost it."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fcdd.framing import Frame
from fcdd.serve import decoder
from fcdd.serve.limits import Limits, Refusal
from fcdd.serve.logs import log

START_SECONDS = 30.0
PAUSE = 1.0  # seconds between two attempts to start a decoder
PIECE = 1 << 18  # bytes that are written at a time


@dataclass(frozen=True)
class Decoded:
    """RGB uint8 (h, w, 3) of the shape that was asked for, and the (H, W) of the image that was sent."""

    pixels: NDArray[np.uint8]
    size: tuple[int, int]


@dataclass(frozen=True)
class Upload:
    """One encoded image; `name` is what the client calls it and is only ever given back to it."""

    name: str | None
    content: bytes


@dataclass(frozen=True)
class _Job:
    head: bytes
    pieces: tuple[bytes, ...]
    answer: asyncio.Future[bytes]


class Decoders:
    """A number of decoder processes with one queue of jobs; its methods are called in the event loop's thread."""

    def __init__(self, limits: Limits, count: int) -> None:
        self.restarts = 0
        self._limits, self._count = limits, count
        self._jobs: asyncio.Queue[_Job] = asyncio.Queue()
        self._alive: set[Process] = set()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start all decoders; RuntimeError where none of them works."""
        self._tasks = [asyncio.create_task(self._serve()) for _ in range(self._count)]
        with suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                while len(self._alive) < self._count:
                    await asyncio.sleep(0.02)
        if not self._alive:
            await self.close()
            raise RuntimeError("no decoder process could be started")

    @property
    def working(self) -> bool:
        """Whether there is a process that can decode."""
        return bool(self._alive)

    async def close(self) -> None:
        """End all processes, whatever they are doing."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def image(self, content: bytes, shape: tuple[int, int], frame: Frame = Frame()) -> Decoded:
        """Decode an image and bring it to `shape` (h, w), the network's input, as `frame` says; Refusal 413, 415, 422
        or 504."""
        answer = await self._do(decoder.IMAGE, *shape, content, frame=frame)
        size = decoder.SIZE.unpack_from(answer)
        pixels = np.frombuffer(answer, np.uint8, offset=decoder.SIZE.size).reshape(*shape, 3)
        return Decoded(pixels, (size[0], size[1]))

    async def form(self, content_type: str, body: bytes, most: int) -> list[Upload]:
        """The files named `image` of a multipart body, 1 … `most`; Refusal 422 or 504."""
        kind = content_type.encode("latin-1", "replace")
        answer = await self._do(decoder.FORM, most, len(kind), kind, body)
        listed, _, rest = answer.partition(b"\n")
        found, at = [], 0
        for name, length in json.loads(listed):
            found.append(Upload(name or None, rest[at : at + length]))
            at += length
        return found

    async def _do(self, kind: int, first: int, second: int, *pieces: bytes, frame: Frame = Frame()) -> bytes:
        """The answer to a job; one whose caller has given up before its turn is not done."""
        head = decoder.JOB.pack(kind, first, second, *decoder.packed(frame), sum(map(len, pieces)))
        job = _Job(head, pieces, asyncio.get_running_loop().create_future())
        self._jobs.put_nowait(job)
        return await job.answer

    async def _serve(self) -> None:
        """One process after the other, and its jobs one after the other."""
        while True:
            try:
                process = await self._started()
            except (OSError, EOFError, TimeoutError) as error:
                log("decoder does not start", level=logging.ERROR, failure=error)
                await asyncio.sleep(PAUSE)
                continue
            self._alive.add(process)
            try:
                while (job := await self._next(process)) and await self._exchange(process, job):
                    pass
            finally:
                self._alive.discard(process)
                ended = await _end(process)
            self.restarts += 1
            log("decoder replaced", level=logging.WARNING, ended=ended)

    async def _started(self) -> Process:
        """A process that has said that it is ready."""
        limits = self._limits
        numbers = (str(number) for number in (decoder.memory(limits), limits.pixels, limits.side))
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-P", "-m", decoder.__name__, *numbers),  # -P: no module is looked for in the working directory
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,  # libraries write there what they think of an image
            start_new_session=True,  # Ctrl-C is for the server
            # Threads of its own would take address space and nothing here uses them.
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        try:
            async with asyncio.timeout(START_SECONDS):
                await _read(process)
        except BaseException:
            await _end(process)
            raise
        return process

    async def _next(self, process: Process) -> _Job | None:
        """The next job that somebody waits for; None where the process has ended by itself."""
        while True:
            ended = asyncio.create_task(process.wait())
            came = asyncio.create_task(self._jobs.get())
            try:
                await asyncio.wait({ended, came}, return_when=asyncio.FIRST_COMPLETED)
                if ended.done():
                    if came.done():  # it is for another process
                        self._jobs.put_nowait(came.result())
                    return None
                if not came.result().answer.done():
                    return came.result()
            finally:
                ended.cancel()
                came.cancel()

    async def _exchange(self, process: Process, job: _Job) -> bool:
        """Have a job done; False where the process is of no more use."""
        try:
            async with asyncio.timeout(self._limits.seconds):
                await _write(process, job)
                status, answer = await _read(process)
        except TimeoutError:
            _fail(job, Refusal(504, f"not decoded within {self._limits.seconds:g} s"))
            return False
        except (EOFError, OSError):
            late = await process.wait() == -signal.SIGPROF if hasattr(signal, "SIGPROF") else False
            why = "takes too long to decode" if late else "its decoder failed"
            _fail(job, Refusal(422, f"{why}. Save it again as PNG."))
            return False
        except BaseException as error:
            _fail(job, error if isinstance(error, Exception) else Refusal(503, "the server stops"))
            raise
        if status == 200:
            if not job.answer.done():
                job.answer.set_result(answer)
        elif status == 500:
            _fail(job, RuntimeError(answer.decode()))
        else:
            _fail(job, Refusal(status, answer.decode()))
        return True


def _fail(job: _Job, error: Exception) -> None:
    if not job.answer.done():
        job.answer.set_exception(error)


async def _end(process: Process) -> int:
    """Kill a process and leave nothing of it; how it ended, a negative signal number where a signal did it."""
    with suppress(ProcessLookupError):
        process.kill()
    assert process.stdin
    process.stdin.close()
    return await process.wait()


async def _write(process: Process, job: _Job) -> None:
    assert process.stdin
    process.stdin.write(job.head)
    for piece in job.pieces:
        for at in range(0, len(piece), PIECE):
            process.stdin.write(piece[at : at + PIECE])
            await process.stdin.drain()


async def _read(process: Process) -> tuple[int, bytes]:
    """Status and content of an answer; EOFError where the process ends before it is complete."""
    assert process.stdout
    status, length = decoder.ANSWER.unpack(await process.stdout.readexactly(decoder.ANSWER.size))
    return status, await process.stdout.readexactly(length)
