"""Models side by side: figures, verdicts that differ and what is said of them, against what is worked out by hand."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from fcdd import images
from fcdd.metrics import auroc, auroc_difference

from ..batch.brightness import SIDE, write_model
from ..conftest import Deployed
from ..invoke import fcdd

GOOD, DEFECTS = (20, 60, 100, 140), (90, 110, 200, 250)


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """Four good parts and four defects, one grey level each; the score is the level / 255."""
    for folder, levels in (("good", GOOD), ("defects", DEFECTS)):
        (tmp_path / "parts" / folder).mkdir(parents=True)
        for level in levels:
            images.save_png(np.full((SIDE, SIDE), level, np.uint8), tmp_path / "parts" / folder / f"{level}.png")
    return tmp_path / "parts"


def model(path: Path, level: float) -> Path:
    """Rejects what is brighter than this grey level."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_model(path, level / 255)


def test_what_changes_is_counted_and_said(parts: Path, tmp_path: Path) -> None:
    strict, lax = model(tmp_path / "strict.onnx", 95), model(tmp_path / "lax.onnx", 205)
    code, out, err = fcdd("compare", lax, strict, parts, "-o", tmp_path / "out", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert [one["name"] for one in told["models"]] == ["lax", "strict"]
    assert told["models"][0]["image_auroc"] == told["models"][1]["image_auroc"]
    (difference,) = told["differences"]
    files = {one["file"]: one["verdicts"] for one in told["changed"]}
    assert files["defects/200.png"] == {"lax": "REVIEW", "strict": "NG"}
    assert files["good/140.png"]["strict"] == "NG"
    assert "good/20.png" not in files
    assert difference["changed"] == len(files)
    assert (difference["rejected"], difference["accepted"], difference["worse"]) == (2, 0, True)
    code, out, _ = fcdd("compare", lax, strict, parts, "-o", tmp_path / "out2")
    assert f"strict gives {len(files)} of 8 images another verdict than lax." in out
    assert "It rejects 2 good parts that lax accepts" in out
    assert "good/140.png: " in out
    with (tmp_path / "out" / "verdicts.csv").open(newline="") as file:
        rows = {row["file"]: row for row in csv.DictReader(file)}
    assert len(rows) == 8
    assert rows["defects/250.png"]["strict verdict"] == "NG"
    assert float(rows["defects/250.png"]["strict times_the_limit"]) == pytest.approx(250 / 95, rel=0.01)
    assert json.loads((tmp_path / "out" / "comparison.json").read_text())["changed"] == told["changed"]
    for folder in ("input", "model-1", "model-2"):
        assert len(images.find(tmp_path / "out" / folder)) == 8


def test_a_script_can_ask_whether_a_model_is_worse(parts: Path, tmp_path: Path) -> None:
    old, new = model(tmp_path / "old" / "m.onnx", 95), model(tmp_path / "new" / "m.onnx", 205)
    out = ("-o", tmp_path / "out", "--overwrite")
    code, text, _ = fcdd("compare", old, new, parts, *out, "--fail-on", "worse")
    assert (code, "passes 1 defect that" in text) == (1, True)  # that of level 110
    assert fcdd("compare", old, old, parts, *out, "--fail-on", "worse")[0] == 0
    assert fcdd("compare", old, new, parts, *out, "--fail-on", "changed")[0] == 1
    code, text, _ = fcdd("compare", old, old, parts, *out, "--fail-on", "changed")
    assert (code, "Both pass the same defects." in text, "Both reject the same good parts." in text) == (0, True, True)
    assert "another verdict than" in text
    # Without labels verdicts can be compared, mistakes cannot.
    code, text, _ = fcdd("compare", old, new, parts / "good", *out, "--fail-on", "changed")
    assert (code, "AUROC" in text) == (1, False)
    code, _, err = fcdd("compare", old, new, parts / "good", *out, "--fail-on", "worse")
    assert (code, "Use --fail-on changed" in err) == (2, True)


def test_three_models_trained_and_exported(deployed: Deployed, tmp_path: Path) -> None:
    deployed.detector.save(tmp_path / "plate.safetensors")
    models = (tmp_path / "plate.safetensors", deployed.onnx, deployed.onnx)
    code, out, err = fcdd("compare", *models, deployed.plates, "-o", tmp_path / "out", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["changed"] == []
    assert [one["changed"] for one in told["differences"]] == [0, 0]
    assert told["models"][0]["pixel_auroc"] == pytest.approx(told["models"][1]["pixel_auroc"], abs=1e-3)
    assert len({one["name"] for one in told["models"]}) == 3
    assert [one["trained_on"] for one in told["models"]] == [0, 0, 0]
    code, out, _ = fcdd("compare", *models[:2], deployed.plates / "train" / "good", "-o", tmp_path / "seen")
    assert "has learnt from 21 of these images" in out


def test_bad_calls_say_what_to_do(parts: Path, tmp_path: Path) -> None:
    one = model(tmp_path / "m.onnx", 95)
    code, _, err = fcdd("compare", one, parts)
    assert (code, "at least two models" in err) == (2, True)
    code, _, err = fcdd("compare", one, one, parts, "--fail-on", "ng")
    assert (code, "must be worse or changed" in err) == (2, True)
    code, _, err = fcdd("compare", one, one, parts, "-o", parts)
    assert (code, "Choose another -o" in err) == (2, True)


def test_the_interval_of_a_difference_covers_it() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 60)
    hits, truth = 0, 0.0
    for _ in range(200):
        part = rng.normal(size=120)
        first, second = (part + labels * 1.2 + rng.normal(scale=0.7, size=120) for _ in range(2))
        difference, low, high = auroc_difference(first, second, labels)
        assert difference == pytest.approx(auroc(second, labels) - auroc(first, labels))
        hits += low <= truth <= high
    assert 0.9 <= hits / 200 <= 0.99
    same = auroc_difference(labels, labels, labels)
    assert same[0] == 0
    assert -0.1 < same[1] < 0 < same[2] < 0.1
