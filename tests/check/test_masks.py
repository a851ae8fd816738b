"""Masks that do not fit: each fault planted once in a clean folder."""

from __future__ import annotations

from pathlib import Path

from fcdd.check import check
from fcdd.check.folders import locate
from fcdd.check.masks import check_masks

from .parts import blurred, brief, save, spot


def test_each_fault_gives_its_finding_and_nothing_else(parts: Path) -> None:
    masks = parts / "ground_truth"
    save(spot(), masks / "dent/nothing.png")
    save(spot(), masks / "dent/000_mask.bmp")
    save(spot()[:60], masks / "dent/002_mask.png")
    save(0 * spot(), masks / "dent/004_mask.png")
    save(255 - spot(), masks / "dent/006_mask.png")
    save(spot(), masks / "good/050_mask.png")
    save(0 * spot(), masks / "good/051.png")
    (masks / "spot/001_mask.png").unlink()
    (masks / "spot/003_mask.png").unlink()
    save(blurred(spot()), masks / "spot/003_mask.jpg")
    diagnosis = check(parts, quiet=True)
    assert brief(diagnosis) == {
        ("error", "mask-without-image", "ground_truth/dent/nothing.png"),
        ("error", "mask-ambiguous", "ground_truth/dent/000_mask.bmp", "ground_truth/dent/000_mask.png"),
        ("error", "mask-size", "ground_truth/dent/002_mask.png"),
        ("warning", "mask-empty", "ground_truth/dent/004_mask.png"),
        ("warning", "mask-large", "ground_truth/dent/006_mask.png"),
        ("error", "mask-on-good", "ground_truth/good/050_mask.png"),
        ("warning", "empty-mask-on-good", "ground_truth/good/051.png"),
        ("note", "defect-without-mask", "test/spot/001.png"),
        ("error", "unreadable", "ground_truth/spot/003_mask.jpg"),
    }
    assert diagnosis.counts["masks"] == 8 + 4 - 2
    for finding in diagnosis.findings:
        assert finding.message.endswith(".")
        assert finding.advice.endswith((".", "?"))


def test_masks_without_subfolders_fit_unless_two_images_claim_them(tmp_path: Path) -> None:
    for file in ("good/1.png", "defects/dent/2.png", "defects/hole/3.png", "masks/2.png", "masks/3_mask.png"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    folders = locate(tmp_path, None, None, None)
    assert list(check_masks(folders, folders.files(), [], [])) == []
    (tmp_path / "defects/hole/2.png").touch()
    (finding,) = check_masks(folders, folders.files(), [], [])
    assert (finding.severity, finding.code, finding.files) == ("error", "mask-ambiguous", ("masks/2.png",))
