"""Ray on this machine, with a worker killed in the middle: nothing is lost, nothing is run twice to the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from . import layouts

pytest.importorskip("ray")


def test_a_worker_killed_in_the_middle_is_replaced_and_goes_on(tmp_path: Path) -> None:
    root, out = layouts.fashion_mnist(tmp_path / "data", train=12, test=8), tmp_path / "out"
    command = [
        sys.executable, "-m", "fcdd.cli", "reproduce", "table1", "--datasets", "fmnist", "--methods", "fcdd",
        "--classes", "trouser,t-shirt", "--data", "data", "--oe", f"folder:{root / 'aux'}", "--set", "batch=4",
        "-o", "out", "--epochs", "10", "--checkpoint-seconds", "0", "--on", "ray", "--json",
    ]  # fmt: skip
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    until = time.monotonic() + 240
    while not (running := list(out.glob("jobs/*/checkpoint.safetensors"))):
        assert time.monotonic() < until
        assert started.poll() is None
        time.sleep(0.01)
    victim = running[0].parent
    os.kill(json.loads((victim / "sessions.jsonl").read_text().splitlines()[0])["pid"], signal.SIGKILL)
    told, _ = started.communicate(timeout=240)
    assert started.returncode == 0
    assert json.loads(told)["status"] == {
        "done": 2, "failed": 0, "running": 0, "left": 0, "seconds_left": 0.0, "failures": [],
    }  # fmt: skip
    folders = sorted(out.glob("jobs/*"))
    assert len(folders) == 2
    for folder in folders:
        sessions = [json.loads(line) for line in (folder / "sessions.jsonl").read_text().splitlines()]
        assert len(sessions) == (2 if folder == victim else 1)
        assert len({session["pid"] for session in sessions}) == len(sessions)
        result = json.loads((folder / "result.json").read_text())
        assert len(result["losses"]) == 10
        assert (folder / "result.json").stat().st_mtime > sessions[-1]["started"]
