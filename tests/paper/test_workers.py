"""Worker processes: all tasks done once, cores shared, and neither a kill nor Ctrl-C costs more than a checkpoint."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from fcdd.cli import app
from fcdd.paper import workers
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.workers import run_locally

from . import layouts
from .test_grid import task_of

LONG = 10  # epochs: a few seconds of training


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return layouts.fashion_mnist(tmp_path_factory.mktemp("data"), train=12, test=8)


def sessions(ledger: Ledger, task: Task) -> list[dict[str, float]]:
    path = ledger.folder(task) / "sessions.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def wait_for(path: Path, seconds: float = 240.0) -> None:
    until = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < until, f"{path} did not appear"
        time.sleep(0.01)


def test_a_killed_worker_costs_its_job_no_more_than_a_checkpoint(root: Path, tmp_path: Path) -> None:
    ledger, whole = Ledger(tmp_path / "a"), Ledger(tmp_path / "b")
    long, short, bad = task_of(root, epochs=LONG, batch=4), task_of(root, 1), task_of(root, exposure="emnist")

    def kill() -> None:
        wait_for(ledger.folder(long) / "checkpoint.safetensors")
        os.kill(int(sessions(ledger, long)[0]["pid"]), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    counts = run_locally(ledger, [long, short, bad], workers=2, quiet=True, checkpoint_seconds=0.0)
    killer.join()
    assert counts == {"done": 1, "failed": 1, "running": 0, "left": 1}
    assert (ledger.state(long), ledger.state(short), ledger.state(bad)) == ("left", "done", "failed")
    written = (ledger.folder(short) / "result.json").stat().st_mtime_ns
    counts = run_locally(ledger, [long, short, bad], workers=2, quiet=True)
    assert counts == {"done": 1, "failed": 0, "running": 0, "left": 0}
    assert (ledger.folder(short) / "result.json").stat().st_mtime_ns == written
    assert [len(sessions(ledger, task)) for task in (long, short, bad)] == [2, 1, 1]
    torch.set_num_threads(1)
    whole.execute(long)
    resumed, uninterrupted = ledger.result(long), whole.result(long)
    assert resumed is not None
    assert uninterrupted is not None
    assert resumed["losses"] == uninterrupted["losses"]
    assert resumed["scores"] == uninterrupted["scores"]


def test_ctrl_c_stops_all_workers_and_the_same_command_goes_on(root: Path, tmp_path: Path) -> None:
    command = [
        "reproduce", "table1", "--datasets", "fmnist", "--methods", "fcdd", "--classes", "trouser,t-shirt",
        "--data", str(root), "--oe", f"folder:{root / 'aux'}", "--set", "batch=4", "--epochs", str(LONG),
        "-o", str(tmp_path), "--workers", "2", "--checkpoint-seconds", "0",
    ]  # fmt: skip
    started = subprocess.Popen([sys.executable, "-m", "fcdd.cli", *command], stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 240
    while len(list(tmp_path.glob("jobs/*/checkpoint.safetensors"))) < 2:
        assert time.monotonic() < until
        assert started.poll() is None
        time.sleep(0.01)
    started.send_signal(signal.SIGINT)
    _, err = started.communicate(timeout=240)
    assert started.returncode == 130
    assert "stopped with 2 jobs left. Go on with the same command: fcdd reproduce table1" in err
    assert list(tmp_path.glob("jobs/*/result.json")) == []
    for session in tmp_path.glob("jobs/*/sessions.jsonl"):
        with pytest.raises(ProcessLookupError):
            os.kill(json.loads(session.read_text())["pid"], 0)
    told = CliRunner().invoke(app, [*command, "--status"]).stdout
    assert told.startswith("done 0  failed 0  running 0  left 2\ntime left unknown\n")
    done = CliRunner().invoke(app, [*command, "--json"]).stdout
    assert json.loads(done)["status"]["done"] == 2
    assert all(len(path.read_text().splitlines()) == 2 for path in tmp_path.glob("jobs/*/sessions.jsonl"))


def test_workers_share_the_cores(monkeypatch: pytest.MonkeyPatch, root: Path, tmp_path: Path) -> None:
    given: list[int] = []
    start = workers._start

    def spy(ledger: Ledger, task: Task, threads: int, checkpoint_seconds: float) -> workers.BaseProcess:
        given.append(threads)
        return start(ledger, task, threads, checkpoint_seconds)

    monkeypatch.setattr(workers, "_start", spy)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)))
    tasks = [task_of(root, exposure="emnist", seed=seed) for seed in range(2)]
    run_locally(Ledger(tmp_path), tasks, workers=2, quiet=True)
    run_locally(Ledger(tmp_path / "one"), tasks[:1], workers=8, quiet=True)
    assert given == [3, 3, 6]
