"""`fcdd serve` as a process: how it starts, refuses to start, and stops."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from typer.testing import CliRunner

from fcdd.cli import app

from .running import PATIENCE, HalfRequest

PREDICT = "/v1/models/plate/predict"


@contextmanager
def process(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running server and its address."""
    command = [sys.executable, "-m", "fcdd.cli", "serve", *map(str, arguments), "--port", "0", "--threads", "1"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr
        told = json.loads(server.stderr.readline())
        assert told["event"] == "serving"
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                requests.get(told["address"] + "/readyz", timeout=5).raise_for_status()
                break
            except requests.ConnectionError:
                time.sleep(0.02)
        yield server, told["address"]
    finally:
        server.kill()
        server.wait()


def refuses(address: str) -> bool:
    host, _, port = address.removeprefix("http://").partition(":")
    try:
        socket.create_connection((host, int(port)), 5).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop_it_finishes_what_it_took(plate_model: Path, defect: Path, number: signal.Signals) -> None:
    with process(plate_model) as (server, address):
        taken = HalfRequest(address, PREDICT, defect.read_bytes())
        while "fcdd_queue_images 1.0" not in requests.get(address + "/metrics", timeout=20).text:
            time.sleep(0.01)
        os.kill(server.pid, number)
        deadline = time.monotonic() + PATIENCE
        while not refuses(address) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert server.poll() is None
        answer = taken.finish()
        assert answer.startswith(b"HTTP/1.1 200")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["verdict"] in ("OK", "REVIEW", "NG")
        assert server.wait(PATIENCE) == 0
        assert server.stderr
        lines = [json.loads(line) for line in server.stderr]
        assert lines[-1]["event"] == "stopped"
        (told,) = (line for line in lines if line.get("path") == PREDICT)
        assert (told["status"], told["model"], told["method"]) == (200, "plate", "POST")


def test_it_needs_no_torch(plate_model: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from fcdd.serve import server; "
        f"server.load([Path({str(plate_model)!r})], 1); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--port", "70000"], "--port 70000"),
        (["--port", "-1"], "--port -1"),
        (["--threads", "100000"], "--threads 100000"),
        (["--timeout", "nan"], "limit seconds"),
        (["--timeout", "inf"], "limit seconds"),
        (["--timeout", "0"], "limit seconds"),
        (["--max-body", "inf"], "--max-body inf"),
        (["--max-body", "-3"], "--max-body -3"),
        (["--max-pixels", "1e9"], "--max-pixels 1e+09"),
        (["--queue", "0"], "limit queue"),
        (["--batch", "-2"], "limit batch"),
        (["--host", "no.such.host.invalid"], "--host no.such.host.invalid"),
        (["--proxy", "not an address"], "--proxy not an address"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_starts(options: list[str], told: str) -> None:
    # No such model exists: the options are looked at first.
    result = CliRunner().invoke(
        app, ["serve", "missing.onnx", *(options or []), *([] if "--port" in options else ["--port", "0"])]
    )
    assert result.exit_code == 2
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_negative_number_of_threads_is_refused_as_by_every_command() -> None:
    result = CliRunner().invoke(app, ["serve", "missing.onnx", "--threads", "-1"])
    assert result.exit_code == 2
    assert "--threads" in result.stderr
