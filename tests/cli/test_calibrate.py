"""Limits by hand, from defects and undone: what is said is true, every version is kept, and a kill loses none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fcdd.detector import load

from ..conftest import Deployed
from ..invoke import fcdd
from .conftest import Line


def told(*words: str | Path) -> dict[str, Any]:
    code, out, err = fcdd("calibrate", *words, "--json")
    assert code == 0, err
    answer: dict[str, Any] = json.loads(out)
    return answer


def test_a_threshold_by_hand_says_what_it_does(line: Line) -> None:
    answer = told(line.model, "--threshold", "0.3")
    assert answer["reject_above"] == 0.3
    assert answer["review_above"] <= 0.3
    above = sum(score > 0.3 for score in load(line.model).calibration.scores)
    assert f"set by hand. Good calibration images rejected: {above} of 99 (" in answer["guarantee"]
    assert "at most" not in answer["guarantee"]
    assert "Nothing more is promised" in answer["guarantee"]


def test_a_threshold_on_a_score_moves_off_it(line: Line) -> None:
    score = load(line.model).calibration.scores[60]
    answer = told(line.model, "--threshold", repr(score))
    assert answer["reject_above"] == pytest.approx(score, rel=2e-4)
    assert answer["reject_above"] > score


def test_a_threshold_from_defects_is_true_to_the_calibration(deployed: Deployed, tmp_path: Path) -> None:
    """What was once printed with this: at most 1 % of good parts score above, while a fifth did."""
    good, new = deployed.plates / "test" / "good", tmp_path / "m.onnx"
    defects = ["--defects", deployed.plates / "test" / "dent", "--miss-rate", "0.25"]
    answer = told(deployed.onnx, good, "-o", new, *defects)
    calibration = load(new).calibration
    assert answer["review_above"] <= answer["reject_above"]
    above = sum(score > answer["reject_above"] for score in calibration.scores)
    assert f"Good calibration images rejected: {above} of 6 (" in answer["guarantee"]
    assert "set from 3 labelled defects, so that on average at most 25 % of such pass" in answer["guarantee"]
    assert "Defects not rejected: 0 of 3" in answer["guarantee"]
    assert len(calibration.defects) == 3


@pytest.mark.parametrize("suffix", [".onnx", ".safetensors"])
def test_every_calibration_is_kept_and_undone_through_a_link(suffix: str, deployed: Deployed, tmp_path: Path) -> None:
    model, link = tmp_path / f"m{suffix}", tmp_path / f"current{suffix}"
    if suffix == ".onnx":
        model.write_bytes(deployed.onnx.read_bytes())
    else:
        deployed.detector.save(model)
    link.symlink_to(model.name)
    first = load(model).calibration
    assert told(link, "--threshold", "0.5")["version"] == 2
    assert told(link, deployed.plates / "test" / "good", "--max-false-rejects", "0.2")["version"] == 3
    code, out, _ = fcdd("calibrate", link, "--undo")
    assert (code, "version 2 of the calibration is active again" in out) == (0, True)
    assert load(model).calibration.reject_above == 0.5
    assert told(link, "--undo")["version"] == 1
    assert link.is_symlink()
    assert load(model).calibration == first
    assert len(load(model).versions.others) == 2
    code, _, err = fcdd("calibrate", link, "--undo")
    assert (code, "none to go back to" in err) == (2, True)


def test_levels_are_set_anew_from_the_scores_that_are_known(line: Line) -> None:
    told(line.model, "--threshold", "0.3")
    answer = told(line.model, "--max-false-rejects", "0.1")
    calibration = load(line.model).calibration
    assert answer["reject_above"] == calibration.threshold(0.1)
    assert answer["version"] == 3
    assert "Calibrated on 99 good images" in answer["guarantee"]


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--undo", "--threshold", "1"],
        ["--threshold", "1", "--max-false-rejects", "0.1"],
        ["--threshold", "1", "--best-f1"],
        ["--threshold", "-1"],
    ],
)
def test_contradictions_are_refused(options: list[str], line: Line) -> None:
    before = line.model.read_bytes()
    code, _, err = fcdd("calibrate", line.model, *options)
    assert code == 2, err
    assert line.model.read_bytes() == before


def test_a_kill_leaves_the_old_versions_or_the_new(line: Line) -> None:
    command = [sys.executable, "-m", "fcdd.cli", "calibrate", str(line.model), "--threshold"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    begun = time.monotonic()
    subprocess.run([*command, "0.3"], env=environment, check=True, capture_output=True)
    needed = time.monotonic() - begun
    for part in (0.7, 0.9):
        process = subprocess.Popen([*command, str(part)], env=environment, stdout=subprocess.DEVNULL)
        time.sleep(part * needed)
        process.send_signal(signal.SIGKILL)
        process.wait()
        versions = load(line.model).versions
        assert versions.active.calibration.reject_above in (0.3, 0.7, 0.9)
        assert len({version.number for version in versions.others}) == len(versions.others) >= 1


def test_drift_says_what_would_have_shown_and_fails_on_request(deployed: Deployed) -> None:
    test = deployed.plates / "test"
    code, out, _ = fcdd("drift", deployed.onnx, test / "good")
    assert code == 0
    assert "× as high" in out or "Too few images to say" in out
    assert fcdd("drift", deployed.onnx, test / "good", "--fail-on", "drift")[0] == 0
    assert fcdd("drift", deployed.onnx, test / "stain", "--level", "0.05", "--fail-on", "drift")[0] == 1
    assert fcdd("drift", deployed.onnx, test / "good", "--fail-on", "ng")[0] == 2
