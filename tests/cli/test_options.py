"""Every option is checked and none is ignored; errors end with a line and the code that says whose they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fcdd.batch import local

from ..invoke import fcdd
from .conftest import Line

NAN = "nan"


def refused(*command: object) -> str:
    code, out, err = fcdd(*command)
    assert (code, out) == (2, ""), (command, err)
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize("level", [NAN, "0", "1", "-1", "inf"])
def test_levels_lie_between_0_and_1(level: str, line: Line) -> None:
    assert "not above 0 and below 1" in refused("drift", line.model, line.images, "--level", level)
    for command in (
        ("calibrate", line.model, line.images, "--max-false-rejects", level),
        ("calibrate", line.model, line.images, "--defects", line.images, "--miss-rate", level),
        ("train", line.images, "-o", line.root / "n.safetensors", "--review", level),
        ("train", line.images, "-o", line.root / "n.safetensors", "--max-false-rejects", level),
    ):
        assert "not above 0 and below 1" in refused(*command)


def test_threads_seeds_and_costs_are_not_negative(line: Line) -> None:
    for command in ("predict", "evaluate", "calibrate", "drift", "audit"):
        refused(command, line.model, line.images, "--threads", "-1")
    refused("train", line.images, "--seed", "-1")
    costs = ("--cost-false-reject", "1", "--cost-escape", NAN)
    assert "at least 0" in refused("calibrate", line.model, line.images, "--defects", line.images, *costs)
    assert "at least 0" in refused("run", "fmnist", "--normal", "trouser", "--checkpoint-seconds", NAN)
    refused("run", "fmnist", "--normal", "trouser", "--epochs", "0")
    refused("reproduce", "table1", "--workers", "-1")


@pytest.mark.parametrize(
    "options",
    [
        ["--best-f1"],
        ["--miss-rate", "0.1"],
        ["--cost-escape", "0"],
        ["--prior", "0.1"],
        ["--defects", "DEFECTS"],
        ["--defects", "DEFECTS", "--best-f1", "--miss-rate", "0.1"],
        ["--defects", "DEFECTS", "--cost-escape", "1"],
        ["--defects", "DEFECTS", "--best-f1", "--cost-escape", "1", "--cost-false-reject", "1"],
        ["--defects", "DEFECTS", "--best-f1", "--prior", "0.1"],
    ],
)
def test_a_threshold_is_chosen_in_one_way_from_defects(options: list[str], line: Line) -> None:
    before = line.model.read_bytes()
    options = [str(line.images) if option == "DEFECTS" else option for option in options]
    refused("calibrate", line.model, line.images, *options)
    assert line.model.read_bytes() == before


def test_options_that_nothing_would_use_are_refused(line: Line, tmp_path: Path) -> None:
    for command, option in (
        (("predict", line.model, line.images, "--format", "jsonl"), "--format"),
        (("predict", line.model, line.images, "--on", "local:7000"), "--on"),
        (("predict", line.model, line.images, "--on", "ray:"), "--on"),
        (("audit", line.model, line.images, "--clean", line.images), "--clean"),
        (("audit", line.model, line.images, "--compare", "--fail-on", "high"), "--fail-on"),
        (("train", line.images, "--masks", line.images), "--masks"),
        (("train", line.images, "--whole"), "--whole"),
        (("train", line.images, "--review", "0.1", "--max-false-rejects", "0.2"), "--review"),
        (("reproduce", "table1", "--cpus", "2"), "--cpus"),
        (("reproduce", "table1", "--on", "ray", "--workers", "2"), "--workers"),
        (("reproduce", "table1", "--status", "--retry-failed"), "--retry-failed"),
        (("reproduce", "table1", "--on", "slurm"), "--on"),
    ):
        assert option in refused(*command)


@pytest.mark.parametrize("debug", ["", "1"])
def test_an_error_of_fcdd_itself_has_a_code_of_its_own(debug: str, line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setenv("FCDD_DEBUG", debug)
    monkeypatch.setattr(local, "predict", broken)
    code, out, err = fcdd("predict", line.model, line.images, "-o", line.root / "out")
    assert (code, out) == (3, "")
    assert "unexpected ZeroDivisionError: by zero" in err
    assert ("Traceback" in err) == bool(debug)
    assert len(err.splitlines()) == 1 or debug
    assert not (line.root / "out").exists()


def test_ctrl_c_is_no_verdict(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(local, "predict", interrupted)
    assert fcdd("predict", line.model, line.images, "-o", line.root / "out")[0] == 130


def test_a_reader_that_goes_away_is_no_verdict(line: Line) -> None:
    command = f"{sys.executable} -m fcdd.cli predict {line.model} {line.images} -o {line.root / 'out'} --json | true"
    done = subprocess.run(["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"], capture_output=True, text=True)
    assert done.returncode in (0, 2), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["train", "export", "audit", "demo", "run", "reproduce"])
def test_what_needs_torch_says_so_without_it(command: str, line: Line) -> None:
    arguments = {
        "train": [line.images, "-o", line.root / "n.safetensors"],
        "export": [line.root / "n.safetensors", "-o", line.root / "n.onnx"],
        "audit": [line.root / "n.safetensors", line.images, "-o", line.root / "a.html"],
        "demo": ["-o", line.root / "demo"],
        "run": ["fmnist", "--normal", "trouser", "-o", line.root / "run"],
        "reproduce": ["table1", "-o", line.root / "results"],
    }[command]
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['torch', 'safetensors', 'onnx', 'accelerate']))\n"
        f"sys.argv = ['fcdd', {command!r}, *{[str(one) for one in arguments]!r}]\n"
        "from fcdd.cli import app; app()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=line.root)
    assert done.returncode == 2, done.stderr
    assert "pip install 'fcdd[train]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
