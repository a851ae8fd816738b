"""The command on a real local Ray: every image once, though a worker is killed, the driver is, and images are bad."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from fcdd.batch import on_ray
from fcdd.cli import app

from .brightness import write_images, write_model

COUNT = 2000
BAD = {"cut.png": "damaged", "empty.png": "zero bytes", "note.png": "not an image"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mass")


@pytest.fixture(scope="module")
def truth(place: Path) -> dict[str, float]:
    """Brightness by name: 2,000 images, three bad files beside them, and the model."""
    write_model(place / "model.onnx")
    known = write_images(place / "in", COUNT)
    (place / "in" / "cut.png").write_bytes((place / "in" / "00" / "00001.png").read_bytes()[:60])
    (place / "in" / "empty.png").touch()
    (place / "in" / "note.png").write_text("not an image")
    return known


@contextlib.contextmanager
def command(place: Path, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """`fcdd predict --on ray` as a process of its own; whatever it started is gone afterwards."""
    line = [sys.executable, "-m", "fcdd.cli", "predict", "model.onnx", *map(str, arguments), "--on", "ray", "--json"]
    quiet = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    with subprocess.Popen(line, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=quiet) as run:
        try:
            yield run
        finally:
            for process in [*family_of(run), run] if run.poll() is None else []:
                with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
                    process.kill()


def wait_for_parts(run: subprocess.Popen[str], folder: Path, count: int) -> None:
    until = time.monotonic() + 120
    while len(list(folder.glob("part-*"))) < count:
        assert run.poll() is None, run.communicate()[1]
        assert time.monotonic() < until
        time.sleep(0.01)


def family_of(run: subprocess.Popen[str]) -> list[psutil.Process]:
    return psutil.Process(run.pid).children(recursive=True)


def workers_of(run: subprocess.Popen[str]) -> list[psutil.Process]:
    return [process for process in family_of(run) if "MapBatches(Worker)" in " ".join(process.cmdline())]


def test_a_killed_worker_loses_and_doubles_nothing(place: Path, truth: dict[str, float]) -> None:
    with command(place, "in", "-o", "out") as run:
        wait_for_parts(run, place / "out", 2)
        heard = [link.laddr.ip for process in family_of(run) for link in process.net_connections() if not link.raddr]
        workers_of(run)[0].kill()
        left = 63 - len(list((place / "out").glob("part-*")))
        out, err = run.communicate(timeout=240)
    assert run.returncode == 0, err
    assert {ip.removeprefix("::ffff:") for ip in heard} == {"127.0.0.1"}
    assert left > 10, "it was killed too late to show anything"
    told = json.loads(out)
    rows = [row for path in place.glob("out/part-*/results.parquet") for row in parquet.read_table(path).to_pylist()]
    errors = [row for path in place.glob("out/part-*/errors.parquet") for row in parquet.read_table(path).to_pylist()]
    assert len(rows) == COUNT == told["scored"]
    assert {row["file"]: row["score"] for row in rows} == pytest.approx(truth)
    assert {row["file"]: row["verdict"] == "NG" for row in rows} == {name: mean > 0.5 for name, mean in truth.items()}
    assert sorted(row["item"] for row in rows + errors) == list(range(COUNT + len(BAD)))
    assert {row["file"] for row in errors} == set(BAD)
    assert all(BAD[row["file"]] in row["reason"] for row in errors)
    assert told["verdicts"]["NG"] == sum(mean > 0.5 for mean in truth.values())
    assert sum(told["verdicts"].values()) == COUNT
    assert [path.name for path in (place / "out").glob(".*")] == [".fcdd.json"], "the dead worker's leavings"


def test_a_killed_run_goes_on_where_it_was(place: Path, truth: dict[str, float]) -> None:
    manifest = place / "list.jsonl"
    lines = [json.dumps({"path": f"in/{name}"}) for name in truth]
    manifest.write_text("\n".join([*lines, json.dumps({"path": "in/gone.png"})]))
    asked = (manifest, "-o", "again", "--format", "jsonl")
    with command(place, *asked) as run:
        wait_for_parts(run, place / "again", 3)
        family, workers = family_of(run), workers_of(run)
        run.kill()
    assert not psutil.wait_procs(workers, timeout=30)[1], "workers outlive their driver"
    for process in family:  # Ray's agents take half a minute to notice
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    before = {path: path.stat().st_mtime_ns for path in place.glob("again/part-*/*")}
    done = len(list(place.glob("again/part-*")))
    assert 3 <= done < 63
    with command(place, *asked) as run:
        out, err = run.communicate(timeout=240)
    assert run.returncode == 0, err
    told = json.loads(out)
    assert told["fresh"] == COUNT + 1 - 32 * done
    assert before == {path: path.stat().st_mtime_ns for path in before}
    rows = [json.loads(line) for path in place.glob("again/part-*/results.jsonl") for line in path.open()]
    assert sorted(row["item"] for row in rows) == list(range(COUNT))
    assert {row["file"]: row["score"] for row in rows} == pytest.approx({f"in/{n}": mean for n, mean in truth.items()})
    assert [path.parent.name for path in place.glob("again/part-*/errors.jsonl")] == ["part-000062"]
    assert (told["images"], told["scored"], told["errors"]) == (COUNT + 1, COUNT, 1)


def test_what_is_refused_before_ray_starts(place: Path, truth: dict[str, float]) -> None:
    (place / "model.safetensors").touch()

    def refused(*arguments: object) -> str:
        result = CliRunner().invoke(app, ["predict", *map(str, arguments), "-o", str(place / "no")])
        assert result.exit_code == 2
        return result.stderr

    assert "fcdd export" in refused(place / "model.safetensors", place / "in", "--on", "ray")
    assert "choose parquet or jsonl" in refused(place / "model.onnx", place / "in", "--on", "ray", "--format", "xml")
    assert "choose local, ray" in refused(place / "model.onnx", place / "in", "--on", "spark")
    (place / "bad.onnx").write_bytes((place / "model.onnx").read_bytes()[:-40])
    assert "bad.onnx" in refused(place / "bad.onnx", place / "in", "--on", "ray")


def test_the_handler_of_sigterm_is_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), on_ray._terminable():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before
