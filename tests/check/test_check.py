"""The whole check: clean folders that must pass, folders that cannot be examined, and real parts."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from fcdd.check import check

from .parts import blurred, brief, darker, load, moved, save


def test_a_clean_folder_has_no_findings(clean: Path) -> None:
    diagnosis = check(clean, quiet=True)
    assert diagnosis.findings == ()
    assert diagnosis.ok
    assert diagnosis.counts == {"train good": 50, "test good": 20, "defects": 8, "masks": 8}
    assert diagnosis.sizes == {"64 × 64": 78}
    assert "1 / 14 = 7.1 %" in diagnosis.text()  # 13 of 50 held out


def test_given_folders_replace_those_found(clean: Path) -> None:
    given = {"good": clean / "train", "defects": clean / "test/spot", "masks": clean / "ground_truth/spot"}
    diagnosis = check(clean / "test/good", **given, quiet=True)
    assert diagnosis.findings == ()
    assert diagnosis.counts == {"train good": 50, "test good": 0, "defects": 4, "masks": 4}


def test_folders_that_cannot_be_examined(clean: Path, tmp_path: Path) -> None:
    missing, several, empty = (check(root, quiet=True) for root in (clean / "nowhere", clean.parent, tmp_path))
    assert brief(missing) == {("error", "missing-folder", str(clean / "nowhere"))}
    assert brief(several) == {("error", "several-classes", "parts")}
    assert brief(empty) == {("error", "too-few-good")}
    for diagnosis in (missing, several, empty):
        assert set(diagnosis.counts.values()) == {0}
        assert "no usable images" in diagnosis.text()
        assert not diagnosis.ok


def test_defects_inside_the_good_folder_are_not_counted_as_good(clean: Path, tmp_path: Path) -> None:
    for source, target in (("train/good", "flat"), ("test/dent", "flat/defects")):
        shutil.copytree(clean / source, tmp_path / target, copy_function=os.link)
    diagnosis = check(tmp_path / "flat", quiet=True)
    bare = [f"defects/00{number}.png" for number in (0, 2, 4, 6)]
    assert brief(diagnosis) == {("error", "nested-folders", "defects"), ("note", "defect-without-mask", *bare)}
    assert diagnosis.counts == {"train good": 50, "test good": 0, "defects": 4, "masks": 0}


def test_real_parts_with_planted_faults(shared_data: Path, tmp_path: Path) -> None:
    source = shared_data / "mvtec" / "bottle"
    if not source.is_dir():
        pytest.skip(f"MVTec bottle not found at {source}")
    root = Path(shutil.copytree(source, tmp_path / "bottle", copy_function=os.symlink))
    good = root / "train" / "good"
    for number in range(80, 209):  # the others suffice, and keep the test short
        (good / f"{number:03}.jpg").unlink()
    planted = {"blurred.png": blurred(load(good / "050.jpg"), 4), "dark.png": darker(load(good / "051.jpg"))}
    planted["moved.png"] = moved(load(good / "052.jpg"))
    for name, pixels in planted.items():
        save(pixels, good / name)
    save(load(good / "007.jpg"), root / "test/good/again.jpg", quality=60)
    diagnosis = check(root, quiet=True)
    assert brief(diagnosis) == {
        ("note", "plain-background"),
        *(("warning", "unlike-the-rest", f"train/good/{name}") for name in planted),
        ("warning", "near-duplicate", "test/good/again.jpg", "train/good/007.jpg"),
        (
            "warning",
            "near-duplicate",
            "train/good/069.jpg",
            "train/good/070.jpg",
        ),  # two shots of one bottle, as published
    }
    assert diagnosis.counts == {"train good": 83, "test good": 21, "defects": 63, "masks": 63}
    assert json.loads(json.dumps(diagnosis.to_dict()))["ok"]
