"""A watched folder: every image once in the log and once in its place, whatever ends the process."""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fcdd import images
from fcdd.batch.watch import Pace, Way, run, watching
from fcdd.errors import OutputError

from ..invoke import fcdd
from .brightness import SIDE, write_model

AT_ONCE = Pace(every=0.01, settle=0, patience=0)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "m.onnx")


def part(path: Path, level: int) -> Path:
    """A grey image; NG where its level is above 127."""
    path.parent.mkdir(parents=True, exist_ok=True)
    images.save_png(np.full((SIDE, SIDE), level, np.uint8), path)
    return path


def log(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (output / "log.jsonl").read_text().splitlines()]


def judge(model: Path, inputs: Path, output: Path, way: Way = "link", pace: Pace = AT_ONCE) -> dict[str, Any]:
    with watching(model, inputs, output, way, pace, threads=1) as watcher:
        return run(watcher, True, threading.Event(), lambda entry: None)


def test_images_are_judged_once_sorted_and_logged(model: Path, tmp_path: Path) -> None:
    inputs, output = tmp_path / "line", tmp_path / "out"
    part(inputs / "a.png", 20)
    part(inputs / "sub" / "b.png", 240)
    told = judge(model, inputs, output)
    assert told["verdicts"] == {"OK": 1, "NG": 1}
    entries = log(output)
    assert [(entry["file"], entry["verdict"], entry["placed"]) for entry in entries] == [
        ("a.png", "OK", "OK/a.png"),
        ("sub/b.png", "NG", "NG/sub/b.png"),
    ]
    assert entries[1]["score"] == pytest.approx(240 / 255, abs=1e-3)
    assert (output / "OK" / "a.png").samefile(inputs / "a.png")
    assert entries[0]["overlay"] is None
    assert images.size(output / entries[1]["overlay"])[1] == SIDE
    again = judge(model, inputs, output)
    assert (again["images"], again["judged_before"]) == (0, 2)
    part(inputs / "c.png", 250)
    assert judge(model, inputs, output)["images"] == 1
    with (output / "log.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["file"], row["verdict"]) for row in rows] == [("a.png", "OK"), ("sub/b.png", "NG"), ("c.png", "NG")]
    assert all(row["time"] and row["model"].startswith("m.onnx ") for row in rows)


def test_a_name_that_comes_again_is_another_image(model: Path, tmp_path: Path) -> None:
    inputs, output = tmp_path / "line", tmp_path / "out"
    for level in (200, 250, 10):
        part(inputs / "camera.png", level)
        assert judge(model, inputs, output, "move")["images"] == 1
        assert not (inputs / "camera.png").exists()
    assert [entry["placed"] for entry in log(output)] == ["NG/camera.png", "NG/camera~2.png", "OK/camera.png"]
    assert images.load(output / "NG" / "camera~2.png").mean() == 250
    assert images.load(output / "NG" / "camera.png").mean() == 200


@pytest.mark.parametrize("way", ["link", "copy", "move"])
def test_the_originals_stay_or_go_as_asked(model: Path, tmp_path: Path, way: Way) -> None:
    source = part(tmp_path / "line" / "a.png", 200)
    content = source.read_bytes()
    judge(model, tmp_path / "line", tmp_path / "out", way)
    assert source.exists() == (way != "move")
    assert (tmp_path / "out" / "NG" / "a.png").read_bytes() == content
    if way == "copy":
        assert not source.samefile(tmp_path / "out" / "NG" / "a.png")


def test_a_file_is_judged_when_it_is_complete(model: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images.save_png(rng.integers(100, 250, (300, 300), dtype=np.uint8), tmp_path / "whole.png")
    content = (tmp_path / "whole.png").read_bytes()
    inputs, output = tmp_path / "line", tmp_path / "out"
    inputs.mkdir()
    stop = threading.Event()
    judged: list[Mapping[str, Any]] = []
    with watching(model, inputs, output, "move", Pace(0.02, 0.2, 60), threads=1) as watcher:
        thread = threading.Thread(target=run, args=(watcher, False, stop, judged.append))
        thread.start()
        with (inputs / "slow.png").open("wb") as file:
            for at in range(0, len(content), 1 + len(content) // 8):
                file.write(content[at : at + 1 + len(content) // 8])
                file.flush()
                time.sleep(0.05)
        assert not judged
        shutil.copy(tmp_path / "whole.png", inputs / "cut.png")
        os.truncate(inputs / "cut.png", len(content) // 2)  # a transfer that has stalled for longer than `settle`
        time.sleep(0.6)
        assert [entry["file"] for entry in judged] == ["slow.png"]
        (inputs / "cut.png").write_bytes(content)
        deadline = time.monotonic() + 10
        while len(judged) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        stop.set()
        thread.join()
    assert [(entry["file"], entry["verdict"]) for entry in judged] == [("slow.png", "NG"), ("cut.png", "NG")]
    assert (output / "NG" / "cut.png").read_bytes() == content


def test_what_cannot_be_read_is_noted_and_left(model: Path, tmp_path: Path) -> None:
    inputs, output = tmp_path / "line", tmp_path / "out"
    part(inputs / "good.png", 10)
    (inputs / "broken.png").write_bytes(b"no image")
    command = ("watch", model, inputs, "-o", output, "--once", "--settle", 0, "--patience", 0, "--every", 0.01)
    code, out, err = fcdd(*command)
    assert (code, "1 OK, 0 REVIEW, 0 NG, 1 that cannot be read" in out, "broken.png" in err) == (2, True, True)
    assert (inputs / "broken.png").read_bytes() == b"no image"
    assert fcdd(*command)[0] == 0
    part(inputs / "broken.png", 250)  # sent again, whole
    code, out, _ = fcdd(*command, "--fail-on", "ng", "--json")
    assert (code, json.loads(out)["verdicts"]) == (1, {"NG": 1})


def test_a_kill_between_two_steps_is_made_good(model: Path, tmp_path: Path) -> None:
    inputs, output = tmp_path / "line", tmp_path / "out"
    for name, level in (("a", 10), ("b", 240)):
        part(inputs / f"{name}.png", level)
    judge(model, inputs, output, "copy")
    (output / "NG" / "b.png").unlink()  # as if killed after the log and before the copy
    with (output / "log.jsonl").open("ab") as file:
        file.write(b'{"time": "2026-')  # as if killed while a third was logged
    judge(model, inputs, output, "copy")
    assert (output / "NG" / "b.png").exists()
    assert len(log(output)) == 2
    # Moved across disks: copied and logged, but killed before the original was removed.
    judge(model, inputs, output, "move")
    assert sorted(path.name for path in inputs.iterdir()) == ["a.png"]
    (output / "log.jsonl").write_text('{"file": "x"}\n')
    with pytest.raises(OutputError, match="line 1 is damaged"):
        judge(model, inputs, output)


@pytest.mark.parametrize("way", ["link", "move"])
def test_no_kill_loses_an_image_or_judges_it_twice(model: Path, tmp_path: Path, way: str) -> None:
    inputs, output = tmp_path / "line", tmp_path / "out"
    rng = random.Random(1)
    levels = {f"{number:03}.png": (7 * number) % 256 for number in range(60)}
    names = list(levels)
    inputs.mkdir()
    pace = ("--settle", "0.01", "--every", "0.01", "--threads", "1")
    command = [sys.executable, "-m", "fcdd.cli", "watch", model, inputs, "-o", output, "--place", way, *pace]
    for _ in range(5):
        for name in names[:12]:
            part(inputs / name, levels[name])
        del names[:12]
        known = len(log(output)) if (output / "log.jsonl").exists() else 0
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            deadline = time.monotonic() + 30
            while process.poll() is None and time.monotonic() < deadline:
                if (output / "log.jsonl").exists() and len(
                    (output / "log.jsonl").read_bytes().splitlines()
                ) > known + 2:
                    break
                time.sleep(0.002)
            time.sleep(rng.random() * 0.02)
            process.kill()
    assert judge(model, inputs, output, "move" if way == "move" else "link")["images"] < 60
    entries = log(output)
    assert sorted(entry["file"] for entry in entries) == sorted(levels)
    placed = sorted(path.name for verdict in ("OK", "REVIEW", "NG") for path in (output / verdict).rglob("*.png"))
    assert placed == sorted(levels)
    for entry in entries:
        assert entry["score"] == pytest.approx(levels[entry["file"]] / 255, abs=1e-3)
        assert images.load(output / entry["placed"]).mean() == levels[entry["file"]]
    assert len(list(inputs.iterdir())) == (0 if way == "move" else 60)
    assert len((output / "log.csv").read_text().splitlines()) == 61


def test_it_stops_cleanly_on_sigterm(model: Path, tmp_path: Path) -> None:
    part(tmp_path / "line" / "a.png", 200)
    command = [sys.executable, "-m", "fcdd.cli", "watch", model, tmp_path / "line", "-o", tmp_path / "out"]
    with subprocess.Popen([*command, "--settle", "0.1", "--every", "5"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert "Stop with Ctrl-C" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert "0 OK, 0 REVIEW, 0 NG" in process.stdout.read()


def test_only_its_own_folders_are_written_and_nothing_is_ever_removed(model: Path, tmp_path: Path) -> None:
    part(tmp_path / "line" / "a.png", 200)
    mine = tmp_path / "mine" / "NG" / "thesis.doc"
    mine.parent.mkdir(parents=True)
    mine.write_text("years of work")
    command = ("watch", model, tmp_path / "line", "--once", "--settle", 0)
    for output in (tmp_path / "mine", tmp_path / "line", tmp_path / "line" / "out", tmp_path):
        code, _, err = fcdd(*command, "-o", output)
        assert (code, "Choose another -o" in err) == (2, True), err
    assert fcdd(*command, "-o", tmp_path / "out", "--place", "move")[0] == 0
    code, _, err = fcdd("predict", model, tmp_path / "mine", "-o", tmp_path / "out", "--overwrite")
    assert code == 2
    assert (tmp_path / "out" / "NG" / "a.png").exists()
    part(tmp_path / "parts" / "p.png", 1)
    code, _, err = fcdd("predict", model, tmp_path / "parts", "-o", tmp_path / "out", "--overwrite")
    assert (code, "holds NG, which fcdd did not make" in err) == (2, True)
    assert (tmp_path / "out" / "NG" / "a.png").exists()
    with watching(model, tmp_path / "line", tmp_path / "out", "link", AT_ONCE):
        code, _, err = fcdd(*command, "-o", tmp_path / "out")
    assert (code, "another process is writing it" in err) == (2, True)


def test_options_are_checked(model: Path, tmp_path: Path) -> None:
    (tmp_path / "line").mkdir()
    command = ("watch", model, tmp_path / "line", "-o", tmp_path / "out")
    for options, said in (
        (("--place", "burn"), "choose link, copy, move"),
        (("--fail-on", "ng"), "only with --once"),
        (("--once", "--fail-on", "bad"), "must be ng or review"),
        (("--once", "--settle", "-1"), "at least 0"),
        (("--once", "--every", "nan"), "at least 0"),
    ):
        code, _, err = fcdd(*command, *options)
        assert (code, said in " ".join(err.split())) == (2, True), err
    code, _, err = fcdd("watch", model, tmp_path / "nowhere", "-o", tmp_path / "out")
    assert (code, "no such folder" in err) == (2, True)
