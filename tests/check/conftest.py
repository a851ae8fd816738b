"""A folder of parts without any fault, and copies of it to be spoilt."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from .parts import copy, part, save, spot


@pytest.fixture(scope="session")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MVTec's layout: 50 and 20 good images, 8 defects of two types with masks."""
    root, rng = tmp_path_factory.mktemp("doctor") / "parts", np.random.default_rng(0)
    for number in range(70):
        folder = "train" if number < 50 else "test"
        save(part(rng), root / folder / "good" / f"{number:03}.png")
    for number in range(8):
        kind, pixels = ("dent", "spot")[number % 2], part(rng)
        pixels[spot() > 0] = 255 * (number % 2)
        save(pixels, root / "test" / kind / f"{number:03}.png")
        save(spot(), root / "ground_truth" / kind / f"{number:03}_mask.png")
    return root


@pytest.fixture
def parts(clean: Path, tmp_path: Path) -> Path:
    return copy(clean, tmp_path / "parts")
