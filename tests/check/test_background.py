"""A plain background is said, and heat on it is noticed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fcdd import images
from fcdd.check.background import FEWEST_HOT, Watch, plain_background
from fcdd.detector.detector import Detector
from fcdd.detector.result import Result
from fcdd.detector.settings import Settings
from fcdd.nn.architecture import Architecture

from .test_foreground import part

SMALL = Settings(architecture=Architecture(planes=4, directions=2), smallest=64, largest=64, vectors=2000)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("good")
    for seed in range(16):
        images.save_png(part(seed), root / f"{seed}.png")
    return images.find(root)


def test_parts_on_a_plain_background_are_said_with_the_remedy(good: list[Path]) -> None:
    (finding,) = plain_background(good)
    assert finding.severity == "note"
    assert "% of the image" in finding.message
    assert "--roi auto" in finding.advice
    assert list(plain_background(good[:9])) == []


def test_textures_have_none(tmp_path: Path) -> None:
    for seed in range(12):
        noise = np.random.default_rng(seed).integers(0, 256, (64, 64, 3), np.uint8)
        images.save_png(noise, tmp_path / f"{seed}.png")
    assert list(plain_background(images.find(tmp_path))) == []


def hot(result: Result, row: int, column: int) -> Result:
    cells = np.zeros_like(result.cells)
    cells[row, column] = 1
    return replace(result, cells=cells)


def test_heat_on_the_background_is_noticed(good: list[Path]) -> None:
    detector = Detector(SMALL).fit(good)
    result = detector.predict(good[0])
    middle = (result.cells.shape[0] // 2, result.cells.shape[1] // 2)
    watch, image = Watch(detector, good), images.load(good[0])
    for _ in range(10):
        watch(image, hot(result, *middle))
    for count in range(FEWEST_HOT):
        assert watch.sentence == ""
        watch(image, hot(result, 0, count))
    assert watch.sentence.startswith(f"In {FEWEST_HOT} of 13 images the hottest place lies on the plain background")
    assert "--roi auto" in watch.sentence


def test_a_model_that_looks_at_a_part_of_the_image_is_not_watched(good: list[Path]) -> None:
    roi = np.zeros((90, 120), np.bool_)
    roi[20:70, 30:90] = True
    detector = Detector(SMALL, roi=roi).fit(good)
    watch = Watch(detector, good)
    for _ in range(10):
        watch(images.load(good[0]), hot(detector.predict(good[0]), 0, 0))
    assert watch.sentence == ""
