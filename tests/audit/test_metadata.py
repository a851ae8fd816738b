"""The metadata probe: chance stays chance, a leak is found, and every property is read from real files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import ExifTags, Image

from fcdd.audit.findings import Severity
from fcdd.audit.metadata import answer, probe
from fcdd.audit.properties import of_file, properties

from .conftest import Case, only


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


def write_jpeg(path: Path, quality: int = 90, exposure: object = None, taken: str = "") -> Path:
    image = Image.fromarray(np.random.default_rng(0).integers(0, 255, (20, 30, 3), dtype=np.uint8))
    exif = image.getexif()
    exif[ExifTags.Base.Make], exif[ExifTags.Base.Model] = "Maker", "Model 7"
    if taken:
        exif[ExifTags.Base.DateTime] = taken
    if exposure is not None:
        exif.get_ifd(ExifTags.IFD.Exif)[ExifTags.Base.ExposureTime] = exposure
    image.save(path, quality=quality, exif=exif)
    return path


def test_header_properties_come_from_the_file(tmp_path: Path) -> None:
    path = write_jpeg(tmp_path / "a.jpg", 50, 0.02, "2024:05:17 11:42:00")
    rough, unusable = of_file(path)
    assert rough["camera make"] == "Maker"
    assert rough["camera model"] == "Model 7"
    assert rough["day"] == "2024:05:17"
    assert rough["exposure time"] == pytest.approx(0.02)
    assert rough["file size"] == path.stat().st_size
    assert unusable == []
    assert of_file(write_jpeg(path, 95))[0]["compression"] < rough["compression"]
    Image.open(path).save(tmp_path / "a.png")
    assert "compression" not in of_file(tmp_path / "a.png")[0]


@pytest.mark.parametrize("exposure", ["1/60 s", "auto", b"\x00\xff", (1, 60), 0.0])
def test_metadata_that_make_no_sense_are_left_out(tmp_path: Path, exposure: object) -> None:
    found, unusable = of_file(write_jpeg(tmp_path / "a.jpg", exposure=exposure, taken="yesterday at noon"))
    assert unusable == ["exposure time", "date"]
    assert "exposure time" not in found
    assert "day" not in found
    assert found["camera make"] == "Maker"


def test_a_damaged_exif_block_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    data = bytearray(write_jpeg(path, exposure=0.02).read_bytes())
    start = data.index(b"Exif\0\0") + 6
    data[start : start + 4] = b"????"
    path.write_bytes(data)
    found, unusable = of_file(path)
    assert unusable == ["EXIF"]
    assert found["file size"] == len(data)


def test_an_audit_says_which_metadata_it_left_out_and_uses_the_rest(plain: Case, tmp_path: Path) -> None:
    evidence = plain.evidence
    paths = [
        write_jpeg(tmp_path / f"{i}.jpg", exposure="auto" if i < 2 else 0.01 + 0.02 * bool(evidence.anomalous[i]))
        for i in range(len(evidence.paths))
    ]
    evidence = replace(evidence, paths=paths)
    (finding,) = answer(evidence, quiet=True)
    assert "exposure time in 2 of the files (0.jpg, …)" in finding.sentence
    assert finding.figures["exposure time → the label"] > 0.9
    assert np.isnan(properties(evidence).known["exposure time"][:2]).all()


def test_brightness_is_that_of_the_images(plain: Case) -> None:
    known = properties(plain.evidence).known
    grey = plain.evidence.inputs.mean((1, 2, 3))
    assert np.corrcoef(known["brightness"].astype(float), grey)[0, 1] > 0.99
    assert "width" not in known  # the same for all


def test_darker_defects_are_reported_but_not_as_high(plain: Case) -> None:
    evidence = plain.evidence
    darker = evidence.inputs.copy()
    darker[evidence.bad] //= 2
    (finding,) = answer(replace(evidence, inputs=darker), quiet=True)
    assert finding.severity is Severity.LOW
    assert finding.figures["brightness → the label"] > 0.95
    assert "an AUROC from 0." in finding.power


def test_three_defects_are_too_few_to_say_what_gives_the_label_away(plain: Case) -> None:
    few = only(plain.evidence, np.concatenate([plain.evidence.good, plain.evidence.bad[:3]]))
    (finding,) = answer(few, quiet=True)
    assert finding.severity is Severity.UNKNOWN
    assert "the label" in finding.title
    assert "For the label there are 42 and 3 images" in finding.power
    assert not any("the label" in name for name in finding.figures)
