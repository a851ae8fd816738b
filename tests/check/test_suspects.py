"""Defects among the good images are named, by training and by `fcdd check --against`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fcdd.check import check
from fcdd.check.suspects import FEWEST, sentence, suspects
from fcdd.detector.detector import Detector
from fcdd.detector.settings import Settings
from fcdd.nn.architecture import Architecture

from ..invoke import fcdd
from .parts import load, moved, save

SMALL = Settings(architecture=Architecture(planes=4, directions=2), smallest=64, largest=64, vectors=2000)


@pytest.fixture
def spoilt(parts: Path) -> Path:
    """Three parts out of place among 50 good images."""
    good = parts / "train" / "good"
    for number in (1, 3, 5):
        save(moved(load(good / f"{number:03}.png")), good / f"bad{number}.png")
    return good


@pytest.fixture
def model(clean: Path, tmp_path: Path) -> Path:
    """One that knows most of the images to be checked."""
    good = sorted((clean / "train" / "good").iterdir())
    Detector(SMALL).fit(good[:44]).save(tmp_path / "m.safetensors")
    return tmp_path / "m.safetensors"


def test_scores_far_above_the_others_are_suspect() -> None:
    usual = np.exp(np.random.default_rng(0).normal(0, 0.2, 100)).tolist()
    assert suspects(usual, usual) == {}
    found = suspects([3.0, *usual, 9.0], usual)
    assert list(found) == [101, 0]
    assert found[101] == pytest.approx(9 / np.exp(np.median(np.log(usual))))


def test_few_images_and_equal_scores_name_nobody() -> None:
    assert suspects([50.0], [1.0] * (FEWEST - 1)) == {}
    assert suspects([1.0] * 30 + [1.1], [1.0] * 30) == {}
    assert suspects([], [1.0] * 30) == {}
    assert sentence(["a"] * 30, [1.0] * 30) == ""


def test_training_says_how_many_and_which() -> None:
    told = sentence([f"{i}.png" for i in range(40)], [1.0] * 35 + [4.0, 5.0, 6.0, 7.0, 8.0])
    assert told.startswith("5 held-out good images of 40 score as defects do, up to 8.0 times")
    assert "39.png, 38.png, 37.png and 2 more" in told


def test_defects_among_the_good_images_are_named(spoilt: Path, model: Path) -> None:
    assert not [f for f in check(spoilt).findings if f.code == "suspect"]
    (finding,) = (f for f in check(spoilt, against=Detector.load(model)).findings if f.code == "suspect")
    assert set(finding.files) == {"bad1.png", "bad3.png", "bad5.png"}
    assert finding.message.startswith("3 good images of 53 score as defects do")


def test_the_command_names_them(spoilt: Path, model: Path) -> None:
    code, out, _ = fcdd("check", spoilt, "--against", model, "--threads", 1)
    assert code == 0
    assert "bad3.png" in out
    assert "Take out those that are not" in out
    code, _, error = fcdd("check", spoilt, "--threads", 1)
    assert code == 2
    assert "only with --against" in error
