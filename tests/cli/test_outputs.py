"""What the commands write: never over their inputs or other people's files, and whole or not at all."""

from __future__ import annotations

import csv
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fcdd import images
from fcdd.detector import load
from fcdd.outputs import claimed, claimed_folder

from ..conftest import Deployed
from ..invoke import fcdd
from .conftest import Line


def contents(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_demo_does_not_touch_a_folder_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.doc").write_text("years of work")
    for further in ([], ["--overwrite"]):
        assert fcdd("demo", "-o", tmp_path / "mine", *further)[0] == 2
    assert (tmp_path / "mine" / "thesis.doc").read_text() == "years of work"


def test_run_does_not_touch_a_folder_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.doc").write_text("years of work")
    code, _, err = fcdd("run", "fmnist", "--normal", "trouser", "-o", tmp_path / "mine", "--overwrite")
    assert (code, "thesis.doc, which fcdd did not make" in err) == (2, True)
    assert (tmp_path / "mine" / "thesis.doc").exists()


def test_predict_never_writes_over_its_inputs(line: Line) -> None:
    before = contents(line.root)
    for output in (line.images, line.root, line.images / "out", line.model):
        code, _, err = fcdd("predict", line.model, line.images, "-o", output, "--overwrite")
        assert (code, "Choose another -o" in err) == (2, True)
    assert contents(line.root) == before


def test_predict_replaces_its_own_results_alone(line: Line) -> None:
    out = line.root / "out"
    assert fcdd("predict", line.model, line.images, "-o", out)[0] == 0
    assert fcdd("predict", line.model, line.images / "00" / "00001.png", "-o", out, "--overwrite")[0] == 0
    assert len((out / "scores.csv").read_text().splitlines()) == 2
    (out / "notes.txt").touch()
    code, _, err = fcdd("predict", line.model, line.images, "-o", out, "--overwrite")
    assert (code, "notes.txt, which fcdd did not make" in err) == (2, True)


def test_the_second_of_two_writers_is_told(line: Line) -> None:
    with claimed_folder(line.root / "out"):
        code, _, err = fcdd("predict", line.model, line.images, "-o", line.root / "out")
    assert (code, "another process is writing it" in err) == (2, True)
    with claimed([line.root / "n.safetensors"]):
        code, _, err = fcdd("train", line.images, "-o", line.root / "n.safetensors")
    assert (code, "another process is writing it" in err) == (2, True)


def test_outputs_of_another_type_are_refused_before_the_work(line: Line) -> None:
    before = contents(line.root)
    for command in (
        ("train", line.images, "-o", line.root / "x.html"),
        ("train", line.images, "-o", line.root / "x"),
        ("audit", line.model, line.images, "-o", line.root / "a.json"),
        ("calibrate", line.model, line.images, "-o", line.root / "b.safetensors"),
        ("evaluate", line.model, line.images, "-o", line.root / "page.onnx"),
        ("export", line.model, "-o", line.root / "b.safetensors"),
    ):
        code, _, err = fcdd(*command)
        assert (code, "name it ." in err) == (2, True), command
    for command in (
        ("export", line.model, "-o", line.model, "--overwrite"),
        ("train", line.images, "-o", line.root / "x.safetensors", "--roi", line.root / "x.html"),
    ):
        code, _, err = fcdd(*command)
        assert (code, "is read by this command" in err) == (2, True), command
    assert contents(line.root) == before


def test_calibrate_follows_a_link_and_changes_its_target(line: Line) -> None:
    link = line.root / "current.onnx"
    link.symlink_to("m.onnx")
    code, _, err = fcdd("calibrate", link, line.images)
    assert code == 0, err
    assert link.is_symlink()
    assert len(load(line.model).calibration.scores) == 12


@pytest.fixture
def small_files() -> Iterator[None]:
    """This process may write files of at most 1 kB, which is what a full disk looks like."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_said_and_leaves_what_was_there(line: Line, request: pytest.FixtureRequest) -> None:
    before = contents(line.root)
    rng = np.random.default_rng(0)
    images.save_png(rng.integers(0, 256, (200, 200, 3), dtype=np.uint8), line.root / "noise.png")
    request.getfixturevalue("small_files")
    for command in (
        ("predict", line.model, line.root / "noise.png", "-o", line.root / "out"),
        ("calibrate", line.model, line.images, "-o", line.root / "n.onnx", "--max-false-rejects", "0.5"),
    ):
        code, _, err = fcdd(*command)
        assert (code, "cannot be written (File too large)" in err) == (2, True), err
    assert {name: content for name, content in contents(line.root).items() if name in before} == before
    assert {path.name for path in line.root.iterdir()} == {"m.onnx", "parts", "noise.png"}


def test_a_place_that_cannot_be_written_to_is_said(line: Line) -> None:
    for command in (
        ("predict", line.model, line.images, "-o", "/proc/out"),
        ("calibrate", line.model, line.images, "-o", "/proc/m.onnx"),
        ("evaluate", line.model, line.images, "-o", "/proc/page.html"),
        ("predict", line.model, line.images, "-o", line.root / ("x" * 256)),
    ):
        code, out, err = fcdd(*command)
        assert (code, out, "cannot be written" in err) == (2, "", True), command


def test_odd_names_do_not_end_a_run(line: Line) -> None:
    odd = line.root / "odd"
    plain = line.images / "00" / "00003.png"
    content = plain.read_bytes()
    long = "ü" * 125 + "1.png"  # 255 bytes
    for name in ("a.png", "a.png.png/b.png", long, "=cmd|' '!A0.png", "-1.png", "new\nline.png", "ok.png"):
        (odd / name).parent.mkdir(parents=True, exist_ok=True)
        (odd / name).write_bytes(content)
    (odd / os.fsdecode(b"caf\xe9.png")).write_bytes(content)
    os.mkfifo(odd / "pipe.png")
    (odd / "zero.png").symlink_to("/dev/zero")
    code, out, err = fcdd("predict", line.model, odd, "-o", line.root / "out", "--skip-bad")
    assert code == 0, err
    assert "caf\\udce9.png" in out
    lines = [json.loads(text) for text in (line.root / "out" / "results.jsonl").read_text().splitlines()]
    assert len(lines) == 8
    assert len({one["overlay"] for one in lines}) == 8
    for one in lines:
        assert images.size(line.root / "out" / one["overlay"])[1] == 32  # below the image stands what is seen
    with (line.root / "out" / "scores.csv").open(newline="") as file:
        names = {row["file"] for row in csv.DictReader(file)}
    assert {"'=cmd|' '!A0.png", "'-1.png", "new\nline.png", "caf\\udce9.png", long} <= names
    code, _, err = fcdd("predict", line.model, odd, "-o", line.root / "out2")
    assert (code, "2 of 10 files cannot be used" in err) == (2, True)


def test_pages_name_images_that_are_not_utf8(deployed: Deployed, tmp_path: Path) -> None:
    for kind in ("good", "stain"):
        (tmp_path / "parts" / kind).mkdir(parents=True)
        for number, path in enumerate(images.find(deployed.plates / "test" / kind)):
            (tmp_path / "parts" / kind / os.fsdecode(b"\xe9%d.png" % number)).write_bytes(path.read_bytes())
    code, _, err = fcdd("evaluate", deployed.onnx, tmp_path / "parts", "-o", tmp_path / "page.html")
    assert code == 0, err
    assert "\\udce91.png" in (tmp_path / "page.html").read_text()


def test_predictions_side_by_side_do_not_mix(line: Line) -> None:
    command = [sys.executable, "-m", "fcdd.cli", "predict", line.model, "-o", line.root / "out", "--json"]
    for name in ("one", "two"):
        (line.root / name).mkdir()
        for number in range(40):
            os.link(line.images / "00" / f"{number % 12:05}.png", line.root / name / f"{name}{number}.png")
    both = [
        subprocess.Popen([*command, line.root / name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for name in ("one", "two")
    ]
    told = [process.communicate() for process in both]
    codes = [process.returncode for process in both]
    assert sorted(codes) == [0, 2], told
    winner = ("one", "two")[codes.index(0)]
    rows = (line.root / "out" / "scores.csv").read_text().splitlines()[1:]
    assert len(rows) == 40
    assert all(row.startswith(winner) for row in rows)
    assert len(list((line.root / "out" / "overlays").iterdir())) == 40
