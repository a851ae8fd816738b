"""A small exported model that answers at once, and images for it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from ..batch.brightness import write_images, write_model


class Line(NamedTuple):
    """A folder with a model that measures brightness, and 12 images."""

    root: Path
    model: Path
    images: Path


@pytest.fixture
def line(tmp_path: Path) -> Line:
    write_model(tmp_path / "m.onnx")
    write_images(tmp_path / "parts", 12)
    return Line(tmp_path, tmp_path / "m.onnx", tmp_path / "parts")
