"""`fcdd export` as it is typed, and the other commands on what it wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fcdd.detector.runtime import Runtime

from ..conftest import Deployed
from ..invoke import fcdd


@pytest.fixture(scope="module")
def trained(deployed: Deployed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trained") / "plate.safetensors"
    deployed.detector.save(path)
    return path


def test_export_writes_a_model_and_tells_its_parity(trained: Path, deployed: Deployed) -> None:
    code, out, err = fcdd("export", trained, "--images", deployed.plates / "train" / "good", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["model"] == str(trained.with_suffix(".onnx"))
    assert told["parity"] == Runtime(told["model"]).parity
    assert told["parity"]["verdicts"] == 0
    code, _, err = fcdd("export", trained)
    assert (code, "--overwrite" in err) == (2, True)


def test_what_cannot_be_exported_is_said(trained: Path, deployed: Deployed, tmp_path: Path) -> None:
    code, _, err = fcdd("export", trained, "-o", tmp_path / "m.bin")
    assert (code, "name it .onnx" in err) == (2, True)
    code, _, err = fcdd("export", trained, "-o", tmp_path / "m.onnx", "--precision", "int4")
    assert (code, "must be fp32, fp16, int8" in err) == (2, True)
    code, _, err = fcdd("export", trained, "-o", tmp_path / "m.onnx", "--precision", "int8")
    assert (code, "--images" in err) == (2, True)
    code, _, err = fcdd("export", deployed.onnx, "-o", tmp_path / "m.onnx")
    assert (code, "not a readable model file" in err) == (2, True)


def test_both_models_tell_the_same(trained: Path, deployed: Deployed, tmp_path: Path) -> None:
    told = []
    for model in (trained, deployed.onnx):
        code, out, err = fcdd("predict", model, deployed.plates / "test", "-o", tmp_path / model.suffix[1:], "--json")
        assert code == 0, err
        lines = (tmp_path / model.suffix[1:] / "results.jsonl").read_text().splitlines()
        told.append([json.loads(line) for line in lines])
    for one, other in zip(*told, strict=True):
        assert other["score"] == pytest.approx(one["score"], rel=1e-4)
        assert (other["file"], other["verdict"], other["p_value"]) == (one["file"], one["verdict"], one["p_value"])
        assert len(other["regions"]) == len(one["regions"])
    figures = []
    for model in (trained, deployed.onnx):
        code, out, err = fcdd("evaluate", model, deployed.plates, "-o", tmp_path / f"{model.suffix}.html", "--json")
        assert code == 0, err
        figures.append(json.loads(out))
    assert figures[1]["verdicts"] == figures[0]["verdicts"]
    for name in ("image_auroc", "pixel_auroc", "aupro"):
        assert figures[1][name] == pytest.approx(figures[0][name], abs=1e-4)


def test_an_exported_model_is_calibrated_and_watched(deployed: Deployed, tmp_path: Path) -> None:
    good, new = deployed.plates / "test" / "good", tmp_path / "new.onnx"
    code, out, err = fcdd("calibrate", deployed.onnx, good, "-o", new, "--max-false-rejects", "0.2")
    assert code == 0, err
    assert "Calibrated on 6 good images" in out
    assert len(Runtime(new).calibration.scores) == 6
    assert Runtime(new).graph == Runtime(deployed.onnx).graph
    code, out, _ = fcdd("drift", new, good, "--json")
    assert (code, json.loads(out)["drifted"]) == (0, False)
