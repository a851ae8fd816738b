"""Tasks on the processes of one machine, which share its cores."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Sequence
from multiprocessing.process import BaseProcess

import torch

from fcdd.interrupt import Interrupted, stop_on_signal
from fcdd.paper.grid import CHECKPOINT_SECONDS, Ledger, State, Task
from fcdd.progress import bar

POLL_SECONDS = 0.05
PATIENCE = 60.0  # seconds a worker has to save its state when asked to stop


def run_locally(
    ledger: Ledger,
    tasks: Sequence[Task],
    workers: int = 0,
    quiet: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> dict[State, int]:
    """Run every task that is left, each in a process of its own, at most `workers` at a time (0: one a core).

    Each process gets its share of the cores as threads. A process that is killed loses nothing but the time since its
    checkpoint: the next call takes it up. Ctrl-C and SIGTERM let all workers save, then raise `Interrupted`.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = min(workers or cores, max(len(tasks), 1))
    waiting = deque(task for task in tasks if ledger.state(task) == "left")
    counts: dict[State, int] = {"done": 0, "failed": 0, "running": 0, "left": 0}
    with stop_on_signal() as stop, bar("jobs", len(tasks), len(tasks) - len(waiting), quiet=quiet) as shown:
        at_work: dict[BaseProcess, Task] = {}
        while (waiting and not stop.is_set()) or at_work:
            while waiting and len(at_work) < workers and not stop.is_set():
                task = waiting.popleft()
                at_work[_start(ledger, task, max(1, cores // workers), checkpoint_seconds)] = task
            if stop.is_set():
                _ask_to_stop(list(at_work))
            for process in [process for process in at_work if not process.is_alive()]:
                task = at_work.pop(process)
                process.join()
                state = ledger.state(task)
                counts[state] += 1
                shown.advance(1, f"{state}: {task.name}")
            time.sleep(POLL_SECONDS)
    if stop.is_set():
        raise Interrupted(f"stopped with {len(waiting) + counts['left']} jobs left")
    return counts


def _start(ledger: Ledger, task: Task, threads: int, checkpoint_seconds: float) -> BaseProcess:
    # A fork server imports torch once and forks before any thread is started; where there is none, a fresh interpreter.
    arguments = (ledger, task, threads, checkpoint_seconds)
    if sys.platform == "win32":
        process: BaseProcess = multiprocessing.get_context("spawn").Process(target=_work, args=arguments)
    else:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["fcdd.paper.grid"])
        process = context.Process(target=_work, args=arguments)
    process.start()
    return process


def _work(ledger: Ledger, task: Task, threads: int, checkpoint_seconds: float) -> None:
    # OMP_NUM_THREADS or a container's limit may have set fewer.
    torch.set_num_threads(min(threads, torch.get_num_threads()))
    try:
        ledger.execute(task, checkpoint_seconds=checkpoint_seconds)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def _ask_to_stop(processes: list[BaseProcess]) -> None:
    """SIGTERM to all, and after `PATIENCE` SIGKILL to those still there."""
    for process in processes:
        process.terminate()
    until = time.monotonic() + PATIENCE
    for process in processes:
        process.join(max(0.0, until - time.monotonic()))
        if process.is_alive():
            process.kill()
            process.join()
