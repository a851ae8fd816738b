"""Copies, exact and not, and parts that are alike without being copies."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fcdd.check import check
from fcdd.check.copies import near_duplicates
from fcdd.check.looks import Look

from .parts import brief, load, save


def test_each_copy_gives_its_finding_and_nothing_else(parts: Path) -> None:
    train, test = parts / "train" / "good", parts / "test" / "good"
    shutil.copy(train / "001.png", train / "copy.png")
    save(load(train / "002.png"), test / "other.bmp")  # other bytes, the same pixels
    (test / "link.png").symlink_to(parts / "test/dent/000.png")
    again = 1.04 * load(train / "003.png") + np.random.default_rng(1).normal(0, 0.5, (64, 64, 3))  # a second shot
    save(np.clip(again, 0, 255).astype(np.uint8), test / "again.png")
    diagnosis = check(parts, quiet=True)
    assert brief(diagnosis) == {
        ("warning", "duplicate", "train/good/001.png", "train/good/copy.png"),
        ("error", "duplicate-across", "test/good/other.bmp", "train/good/002.png"),
        ("error", "duplicate-across", "test/dent/000.png", "test/good/link.png"),
        ("warning", "near-duplicate", "test/good/again.png", "train/good/003.png"),
    }
    assert {finding.message for finding in diagnosis.findings} == {
        "The same image, 2 times in train good.",
        "The same image is in train good and test good.",
        "The same image is in test good and defects.",
        "Almost the same image, 2 times in train good and test good.",
    }


def look(name: str, thumb: NDArray[np.float64]) -> Look:
    reduced = np.clip(thumb, 0, 255).astype(np.uint8)
    traits = np.zeros(7)
    return Look(Path(name), name, "train good", (64, 64), reduced.tobytes(), False, traits, reduced, "", 100)


def test_parts_of_mixed_products_are_alike_yet_no_copies() -> None:
    rng = np.random.default_rng(0)
    products = rng.normal(128, 30, (4, 64, 64))
    parts = [(f"{number}", products[number % 4] + rng.normal(0, 6, (64, 64))) for number in range(100)]
    looks = [look(name, thumb) for name, thumb in parts]
    assert list(near_duplicates(looks)) == []
    again = [look(f"{name} again", thumb + rng.normal(0, 1, (64, 64))) for name, thumb in parts[:2]]
    found = {finding.files for finding in near_duplicates(looks + again)}
    assert found == {("0", "0 again"), ("1", "1 again")}


def test_copies_of_copies_are_one_set_in_a_large_folder() -> None:
    rng = np.random.default_rng(0)
    thumbs = [rng.normal(128, 30, (64, 64)) for _ in range(540)]  # more than are compared at once
    sets = (0, 5, 300, 530), (520, 521)
    for first, *others in sets:
        for at in others:
            thumbs[at] = thumbs[first] + rng.normal(0, 2, (64, 64))
    found = list(near_duplicates([look(f"{at}", thumb) for at, thumb in enumerate(thumbs)]))
    assert [finding.files for finding in found] == [tuple(f"{at}" for at in alike) for alike in sets]
    assert "4 times in train good" in found[0].message
