"""The metadata probe: chance stays chance, a leak is found, and every property is read from real files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fcdd.audit.findings import Severity
from fcdd.audit.metadata import _of_file, answer, probe, properties

from .conftest import Case


def test_noise_is_flagged_no_more_often_than_promised() -> None:
    random = np.random.default_rng(0)
    truth = np.arange(60) % 3 == 0
    flagged = sum(probe("x", random.normal(size=60), "the label", truth, 0.05).low > 0.5 for _ in range(300))
    assert flagged / 300 < 0.06


def test_a_leak_is_found_whatever_its_direction_or_shape() -> None:
    random = np.random.default_rng(1)
    truth = np.arange(80) % 2 == 0
    noise = random.normal(0, 0.3, 80)
    for values in (truth + noise, noise - truth, np.where(truth, noise, 2 * np.sign(noise) + noise)):
        found = probe("x", values, "the label", truth, 0.01)
        assert found.low > 0.5
        assert found.auroc > 0.85
    cameras = np.where(truth, "canon", "nikon")
    assert probe("camera", cameras, "the label", truth, 0.01).auroc == 1.0


def test_header_properties_come_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 255, (20, 30, 3), dtype=np.uint8))
    exif = picture.getexif()
    exif[0x010F], exif[0x0110], exif[0x0132] = "Maker", "Model 7", "2024:05:17 11:42:00"
    picture.save(path, quality=50, exif=exif)
    rough = _of_file(path)
    assert rough["camera make"] == "Maker"
    assert rough["camera model"] == "Model 7"
    assert rough["day"] == "2024:05:17"
    assert rough["file size"] == path.stat().st_size
    picture.save(path, quality=95)
    assert _of_file(path)["compression"] < rough["compression"]
    picture.save(tmp_path / "a.png")
    assert "compression" not in _of_file(tmp_path / "a.png")


def test_brightness_is_that_of_the_pictures(plain: Case) -> None:
    known = properties(plain.evidence)
    grey = plain.evidence.inputs.mean((1, 2, 3))
    assert np.corrcoef(known["brightness"].astype(float), grey)[0, 1] > 0.99
    assert "width" not in known  # the same for all


def test_darker_defects_are_reported_but_not_as_high(plain: Case) -> None:
    evidence = plain.evidence
    darker = evidence.inputs.copy()
    darker[evidence.bad] //= 2
    (finding,) = answer(replace(evidence, inputs=darker), quiet=True)
    assert finding.severity is Severity.LOW
    assert finding.figures["brightness → the label"] == pytest.approx(1.0, abs=0.02)
