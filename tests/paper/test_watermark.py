from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fcdd import images
from fcdd.data import voc
from fcdd.errors import DataError
from fcdd.paper import watermark

from . import layouts


def test_the_mask_is_exactly_what_changed() -> None:
    grey = np.full((240, 320, 3), 100, np.uint8)
    marked, mask = watermark.plant(grey, 0, "x")
    changed = (marked != grey).any(2)
    assert changed.any()
    assert not (changed & ~mask).any()
    assert (changed & mask).sum() > 0.9 * mask.sum()  # where a letter's edge is faintest, rounding leaves the pixel
    rows, columns = np.where(mask)
    assert rows.min() > 200  # at the bottom
    assert columns.max() < 200  # at the left
    assert marked.max() > 180  # white letters …
    assert marked.min() < 60  # … with a dark rim
    assert np.array_equal(watermark.plant(grey, 0, "x")[0], marked)
    assert not np.array_equal(watermark.plant(grey, 0, "y")[1], mask)


def test_a_fifth_of_the_training_horses_bears_the_mark(tmp_path: Path) -> None:
    root = layouts.voc(tmp_path / "data", horses=10, size=64)
    target = watermark.plant_voc(root, tmp_path / "planted", 64)
    record = json.loads((target / "VOC2007" / watermark.RECORD).read_text())
    assert (len(record["marked"]), record["of"]) == (2, 10)
    split = voc.split_others(target, size=64)
    original = voc.split_others(root, size=64)
    assert split.provenance == original.provenance
    for path in sorted((root / "VOCdevkit" / "VOC2007" / "JPEGImages").iterdir()):
        old, new = images.load(path), images.load(target / "VOC2007" / "JPEGImages" / path.name)
        if path.stem not in record["marked"]:
            assert np.array_equal(old, new)
            continue
        wanted, mask = watermark.plant(old, 0, path.stem)
        change = np.abs(new.astype(int) - old).max(2)
        assert np.abs(new.astype(int) - wanted)[mask].mean() < 8  # what JPEG does
        assert change[mask].mean() > 10 * change[~mask].mean()


def test_the_planted_folder_has_the_nominal_images_too(tmp_path: Path) -> None:
    root = layouts.imagenette(layouts.voc(tmp_path / "data"))
    target = watermark.plant_voc(root, tmp_path / "planted", 64)
    assert len(voc.split(target, size=64).nominal) == len(voc.split(root, size=64).nominal) > 0
    assert watermark.plant_voc(root, target, 64) == target  # a second time changes nothing


def test_too_few_horses_are_refused(tmp_path: Path) -> None:
    root = layouts.voc(tmp_path / "data", horses=2)
    with pytest.raises(DataError, match="at least five"):
        watermark.plant_voc(root, tmp_path / "planted", 32)
    assert Image.open(next((root / "VOCdevkit/VOC2007/JPEGImages").iterdir())).size == (64, 64)
