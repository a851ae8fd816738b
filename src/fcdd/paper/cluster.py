"""The same tasks on a Ray cluster, whose nodes share the ledger's folder and the data at the same paths."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence

import torch

from fcdd.batch.cluster import connected
from fcdd.interrupt import Interrupted, stop_on_signal
from fcdd.paper.grid import CHECKPOINT_SECONDS, Ledger, State, Task
from fcdd.paper.workers import PATIENCE
from fcdd.progress import bar

RETRIES = 5  # of a task whose worker or node died; it goes on from its checkpoint
POLL_SECONDS = 0.2


def run_on_ray(
    ledger: Ledger,
    tasks: Sequence[Task],
    address: str = "",
    cpus: float = 1.0,
    gpus: float = 0.0,
    quiet: bool = False,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> dict[State, int]:
    """Run every task that is left on the cluster at `address` (default: RAY_ADDRESS, else a new one on this machine).

    Each task asks for `cpus` and `gpus`. A task whose worker died is submitted again and resumes; the lock on its
    folder keeps two workers from running it at the same time, and a result that is there from being made again.
    Ctrl-C and SIGTERM let the workers save, then raise `Interrupted`.
    """
    shared = Ledger(ledger.root.absolute())
    waiting = [_absolute(task) for task in tasks if ledger.state(task) == "left"]
    counts: dict[State, int] = {"done": 0, "failed": 0, "running": 0, "left": 0}
    with connected(address):
        import ray

        remote = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=RETRIES)(_work)
        submitted = {remote.remote(shared, task, max(1, int(cpus)), checkpoint_seconds): task for task in waiting}
        with stop_on_signal() as stop, bar("jobs", len(tasks), len(tasks) - len(waiting), quiet=quiet) as shown:
            until = float("inf")
            while submitted and time.monotonic() < until:
                if stop.is_set() and until == float("inf"):
                    until = time.monotonic() + PATIENCE
                    for reference in submitted:
                        ray.cancel(reference, force=False)
                ready, _ = ray.wait(list(submitted), num_returns=1, timeout=POLL_SECONDS)
                for reference in ready:
                    task = submitted.pop(reference)
                    state = shared.state(task)
                    counts[state] += 1
                    shown.advance(1, f"{state}: {task.name}")
    if stop.is_set():
        raise Interrupted(f"stopped with {len(submitted) + counts['left']} jobs left")
    return counts


def _absolute(task: Task) -> Task:
    """The task with absolute paths: workers have another working directory."""
    job = task.job
    weights = job.weights.absolute() if job.weights else None
    return dataclasses.replace(task, job=dataclasses.replace(job, data=job.data.absolute(), weights=weights))


def _work(ledger: Ledger, task: Task, threads: int, checkpoint_seconds: float) -> State:
    torch.set_num_threads(threads)
    return ledger.execute(task, checkpoint_seconds=checkpoint_seconds)
