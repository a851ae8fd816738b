"""An experiment as a grid of tasks, and the ledger of their result files: what is done, failed, running and left."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import socket
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import filelock

from fcdd import files
from fcdd.anomalies import exposure
from fcdd.data import DATASETS
from fcdd.errors import DataError
from fcdd.interrupt import Interrupted
from fcdd.paper import probes
from fcdd.paper.run import Job, run, starts_from_weights
from fcdd.training.recipe import Recipe

State = Literal["done", "failed", "running", "left"]
KEY_LENGTH = 12  # hexadecimal digits; a thousand tasks collide with probability 2e-9
CHECKPOINT_SECONDS = 30.0
CLAIM_SECONDS = 1.0  # to wait for a lock: `status` holds it for an instant to see whether it is free


@dataclass(frozen=True)
class Task:
    """One job of an experiment with its place in the table, and a closer look at its model where one is wanted."""

    job: Job
    column: str  # method or variant
    probe: str = ""  # name in fcdd.paper.probes.PROBES

    @property
    def name(self) -> str:
        """What messages call the task."""
        return f"{self.job.recipe.dataset} {self.job.normal}, {self.column}, seed {self.job.seed}"


def key(job: Job) -> str:
    """A hash of all that determines the job's result: recipe, class, seed, protocol, start weights, data files.

    Recipe values that are the defaults are left out, so that a value added later does not disown older results, and
    so is the first revision of a dataset.
    """
    weights = _file_hash(job.weights) if job.weights and starts_from_weights(job) else ""
    told = {
        "recipe": _told(job.recipe),
        "normal": job.normal,
        "seed": job.seed,
        "weights": weights,
        "authors_protocol": job.authors_protocol,
        "data": [
            _dataset_print(job.data, job.recipe.dataset, job.normal),
            _corpus_print(job.data, job.recipe.exposure),
        ],
    }
    if (revision := DATASETS[job.recipe.dataset].revision) > 1:
        told["revision"] = revision
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:KEY_LENGTH]


def _told(recipe: Recipe) -> dict[str, Any]:
    defaults = {field.name: field.default for field in dataclasses.fields(Recipe)}
    return {name: value for name, value in recipe.to_dict().items() if value != defaults[name]}


@lru_cache(maxsize=256)
def _dataset_print(root: Path, name: str, normal: str) -> str:
    """The fingerprint of the files that the dataset `name` reads below `root` for the class `normal`."""
    patterns = (pattern.format(normal=normal) for pattern in DATASETS[name].files)
    return _fingerprint([path for pattern in patterns for path in root.glob(pattern)])


@lru_cache(maxsize=256)
def _corpus_print(root: Path, name: str) -> str:
    return _fingerprint(exposure.files(name, root))


def _fingerprint(found: Sequence[Path]) -> str:
    """A hash of the names and, of files, the sizes."""
    listed = sorted(f"{path.name} {path.stat().st_size if path.is_file() else ''}" for path in found)
    return hashlib.sha256("\n".join(listed).encode()).hexdigest()


@lru_cache(maxsize=16)
def _file_hash(path: Path) -> str:
    if not path.is_file():
        raise DataError(f"{path}: no such weights file")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class Ledger:
    """The results of tasks below one folder, each in a folder of its own that is named by the job and its key.

    Whoever runs a task holds a lock on its folder; the lock of a process that died is free, and its checkpoint is
    taken up again. Experiments that share a job share its result.
    """

    root: Path

    def folder(self, task: Task) -> Path:
        """Where the task's result is, or will be."""
        job = task.job
        parts = (job.recipe.dataset, job.recipe.method, job.normal, f"seed{job.seed}", key(job))
        return self.root / "jobs" / "-".join(parts).replace(" ", "_").replace("/", "_")

    def result(self, task: Task) -> dict[str, Any] | None:
        """The result of a done task, with the probe's figures under its name; None where it is not done."""
        folder = self.folder(task)
        paths = [folder / "result.json"] + ([_probe_path(folder, task.probe)] if task.probe else [])
        if not all(path.is_file() for path in paths):
            return None
        result, *probed = (json.loads(path.read_text()) for path in paths)
        return {**result, **({task.probe: probed[0]} if probed else {})}

    def failure(self, task: Task) -> dict[str, Any] | None:
        """The error and traceback of a failed task."""
        path = self.folder(task) / "failure.json"
        return json.loads(path.read_text()) if path.is_file() else None

    def state(self, task: Task) -> State:
        """Whether the task is done, failed, running in some process, or left."""
        if self.result(task) is not None:
            return "done"
        if self.failure(task) is not None:
            return "failed"
        claim = self.folder(task) / "claim"
        if not claim.exists():
            return "left"
        with _lock(claim, 0.0) as free:
            return "left" if free else "running"

    def forgive(self, tasks: Sequence[Task]) -> None:
        """Forget that tasks failed, so that they are run again."""
        for task in tasks:
            (self.folder(task) / "failure.json").unlink(missing_ok=True)

    def execute(self, task: Task, quiet: bool = True, checkpoint_seconds: float = CHECKPOINT_SECONDS) -> State:
        """Run the task here to its end, unless it is done or somebody else is at it. A failure is written down."""
        folder = self.folder(task)
        folder.mkdir(parents=True, exist_ok=True)
        with _lock(folder / "claim", CLAIM_SECONDS) as mine:
            if not mine:
                return "running"
            if self.result(task) is not None:
                return "done"
            session = {"host": socket.gethostname(), "pid": os.getpid(), "started": time.time()}
            with (folder / "sessions.jsonl").open("a") as file:
                file.write(json.dumps(session) + "\n")
            (folder / "failure.json").unlink(missing_ok=True)
            try:
                run(task.job, folder, quiet=quiet, checkpoint_seconds=checkpoint_seconds)
                if task.probe and not _probe_path(folder, task.probe).is_file():
                    figures = probes.PROBES[task.probe](task.job, folder)
                    files.write_atomically(_probe_path(folder, task.probe), json.dumps(figures).encode())
            except Interrupted:
                return "left"
            except Exception as error:
                told = {"task": task.name, "error": f"{type(error).__name__}: {error}"}
                told["traceback"] = traceback.format_exc()
                files.write_atomically(folder / "failure.json", json.dumps(told, indent=1).encode())
                return "failed"
            return "done"

    def seconds(self, task: Task) -> float | None:
        """How long the last session of a done task took."""
        folder = self.folder(task)
        sessions, result = folder / "sessions.jsonl", folder / "result.json"
        if not sessions.is_file() or not result.is_file():
            return None
        last = json.loads(sessions.read_text().splitlines()[-1])
        return max(0.0, result.stat().st_mtime - float(last["started"]))


@dataclass(frozen=True)
class Status:
    """How far an experiment is. `seconds_left` is None before the first task is done."""

    done: int
    failed: int
    running: int
    left: int
    seconds_left: float | None
    failures: list[dict[str, Any]]


def status(ledger: Ledger, tasks: Sequence[Task], workers: int = 1) -> Status:
    """The states of all tasks; the time left is that of finished tasks of the same recipe, or else of all finished."""
    states = [ledger.state(task) for task in tasks]
    known: dict[str, list[float]] = {}
    for task, state in zip(tasks, states, strict=True):
        if state == "done" and (taken := ledger.seconds(task)) is not None:
            known.setdefault(f"{task.job.recipe.dataset} {task.column}", []).append(taken)
    everything = [seconds for of_kind in known.values() for seconds in of_kind]
    left = 0.0
    for task, state in zip(tasks, states, strict=True):
        if state in ("left", "running"):
            of_kind = known.get(f"{task.job.recipe.dataset} {task.column}", everything)
            # A running task is on average half done.
            left += sum(of_kind) / max(len(of_kind), 1) * (0.5 if state == "running" else 1.0)
    at_work = max(1, workers, states.count("running"))
    return Status(
        done=states.count("done"),
        failed=states.count("failed"),
        running=states.count("running"),
        left=states.count("left"),
        seconds_left=left / at_work if everything else None,
        failures=[failure for task in tasks if (failure := ledger.failure(task)) is not None],
    )


def _probe_path(folder: Path, probe: str) -> Path:
    return folder / f"{probe}.json"


@contextmanager
def _lock(path: Path, seconds: float) -> Iterator[bool]:
    """Whether the lock on `path` could be had within `seconds`; it is held until the block ends or the process dies."""
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=seconds)
    except filelock.Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()
