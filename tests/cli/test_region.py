"""`fcdd train --roi auto`: the parts are found, shown and kept with the model, or it is said why not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from fcdd import images
from fcdd.cli import app
from fcdd.detector.detector import Detector

from ..check.test_foreground import part


def fcdd(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_a_region_is_proposed_shown_and_kept(tmp_path: Path) -> None:
    (tmp_path / "good").mkdir()
    for seed in range(12):
        images.save_png(part(seed), tmp_path / "good" / f"{seed}.png")
    model = tmp_path / "m.safetensors"
    code, out, err = fcdd("train", tmp_path / "good", "-o", model, "--roi", "auto", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert 0.1 < told["roi"]["share"] < 0.5
    mask = images.load_mask(told["roi"]["mask"])
    detector = Detector.load(model)
    assert np.array_equal(detector.roi, mask)
    assert f"{told['roi']['share']:.0%} of the image" in model.with_suffix(".html").read_text()
    code, out, _ = fcdd("check", tmp_path / "good", "--json")
    assert "plain-background" in [finding["code"] for finding in json.loads(out)["findings"]]


def test_without_a_plain_background_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "good").mkdir()
    for seed in range(12):
        noise = np.random.default_rng(seed).integers(0, 256, (64, 64, 3), np.uint8)
        images.save_png(noise, tmp_path / "good" / f"{seed}.png")
    code, _, err = fcdd("train", tmp_path / "good", "-o", tmp_path / "m.safetensors", "--roi", "auto")
    assert code == 2
    assert "no region of interest can be proposed" in err
    assert "--roi MASK" in err
    assert not (tmp_path / "m.safetensors").exists()
