"""Too few images, and images that cannot be read or differ in format: each fault planted once in a clean folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fcdd import images
from fcdd.check import check
from fcdd.check.inventory import few

from .parts import brief, load, part, save, spot


def test_each_fault_gives_its_finding_and_nothing_else(parts: Path) -> None:
    rng, good = np.random.default_rng(1), parts / "train" / "good"
    (good / "cut.png").write_bytes((good / "000.png").read_bytes()[:2000])
    (good / "phone.HEIC").write_bytes(b"x")
    save(part(rng, 80)[8:72], good / "wide.png")
    save(images.resize(part(rng), 80), good / "large.png")
    save(part(rng, 63), good / "tiny.png")
    save(images.luma(part(rng)), good / "gray.png")
    (good / "049.png").rename(good / "named.TIF")
    for name, quality in (("poor", 39), ("fair", 41)):
        save(part(rng), parts / f"test/dent/{name}.jpg", quality=quality)
        save(spot(), parts / f"ground_truth/dent/{name}.png")
    diagnosis = check(parts, quiet=True)
    assert brief(diagnosis) == {
        ("error", "unreadable", "train/good/cut.png"),
        ("warning", "ignored-files", "train/good/phone.HEIC"),
        ("warning", "odd-aspect", "train/good/wide.png"),
        ("warning", "gray-and-colour", "train/good/gray.png"),
        ("warning", "tiny", "train/good/tiny.png"),
        ("warning", "compressed", "test/dent/poor.jpg"),
        ("note", "odd-size", "train/good/large.png", "train/good/tiny.png"),
        ("note", "wrong-suffix", "train/good/named.TIF"),
    }
    assert [finding.severity for finding in diagnosis.findings] == ["error", *["warning"] * 5, *["note"] * 2]
    for finding in diagnosis.findings:
        assert finding.message.endswith(".")
        assert finding.advice.endswith(".")
    said = {finding.code: finding.message for finding in diagnosis.findings}
    assert "worst 39" in said["compressed"]
    assert "2 of 84 images are not 64 × 64" in said["odd-size"]
    assert "1 of 84 gray" in said["gray-and-colour"]
    assert "content is PNG" in said["wrong-suffix"]


def test_gray_is_named_by_the_fewer(clean: Path, tmp_path: Path) -> None:
    for number in range(10):
        pixels = load(clean / f"train/good/{number:03}.png")
        save(pixels if number < 3 else images.luma(pixels), tmp_path / f"{number}.png")
    mixed = next(finding for finding in check(tmp_path, quiet=True).findings if finding.code == "gray-and-colour")
    assert "3 of 10 coloured" in mixed.message
    assert mixed.files == ("0.png", "1.png", "2.png")


@pytest.mark.parametrize(
    ("count", "severity", "says"),
    [
        (0, "error", "0 usable good images"),
        (1, "error", "1 usable good image:"),
        (9, "error", "at least 10"),
        (10, "warning", "1 / 4 = 25.0 %"),
        (49, "warning", "1 / 14 = 7.1 %"),
    ],
)
def test_few_good_images(count: int, severity: str, says: str) -> None:
    (finding,) = few(count)
    assert finding.severity == severity
    assert says in finding.message


def test_enough_good_images() -> None:
    assert list(few(50)) == []
