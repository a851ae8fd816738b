"""Figures of what was trained on: never in the report, and with a warning in an evaluation."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from fcdd import images
from fcdd.training import head

from ..plates import write_plates
from .test_region import fcdd


def test_learnt_defects_count_nowhere_and_an_evaluation_on_them_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head, "STEPS", 40)  # a head for each fold is trained; plates need no more
    plates = write_plates(tmp_path / "plates")
    chosen = tmp_path / "defects"
    for kind in ("stain", "chip"):
        shutil.copytree(plates / "test" / kind, chosen / kind)
    model = tmp_path / "m.safetensors"
    code, out, err = fcdd(
        "train", plates / "train" / "good", "--defects", chosen, "-o", model, "--method", "nominal", "--json"
    )
    assert code == 0, err
    told = json.loads(out)
    assert 0.5 <= told["cross_validated_auroc"] <= 1
    page = model.with_suffix(".html").read_text()
    assert "Image AUROC, cross-validated" in page
    assert "<dt>Image AUROC</dt>" not in page
    assert "Of your" not in page
    code, out, _ = fcdd("evaluate", model, plates, "-o", tmp_path / "e.html", "--json")
    assert code == 0
    (warning,) = json.loads(out)["warnings"]
    assert warning.startswith(f"6 of these {len(images.find(plates / 'test'))} images were trained on")
    assert warning.split(":")[0] in (tmp_path / "e.html").read_text()
