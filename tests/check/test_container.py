"""Format and quality from a file's bytes, against what Pillow was asked to write."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fcdd.check.container import identify

from .parts import part, save


@pytest.mark.parametrize("quality", [5, 15, 25, 39, 40, 50, 51, 75, 90, 97])
@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_jpeg_quality(tmp_path: Path, quality: int, mode: str) -> None:
    exif = Image.Exif()
    exif[270] = "a description, so that a segment stands before the tables"
    image = Image.fromarray(part(np.random.default_rng(0))).convert(mode)
    image.save(tmp_path / "a.jpg", quality=quality, exif=exif)
    wrong, found = identify(tmp_path / "a.jpg")
    assert wrong == ""
    assert found == quality if quality > 20 else found <= 20  # the table's entries end at 255


@pytest.mark.parametrize(
    ("suffix", "name"),
    [
        ("png", "PNG"),
        ("jpg", "JPEG"),
        ("bmp", "BMP"),
        ("tif", "TIFF"),
        ("webp", "WebP"),
        ("gif", "GIF"),
        ("ppm", "PNM"),
    ],
)
def test_the_content_is_named_where_the_suffix_contradicts_it(tmp_path: Path, suffix: str, name: str) -> None:
    right, wrong = tmp_path / f"a.{suffix.upper()}", tmp_path / ("a.jpeg" if suffix == "png" else "a.png")
    save(part(np.random.default_rng(0)), tmp_path / f"a.{suffix}")
    (tmp_path / f"a.{suffix}").rename(right)
    assert identify(right)[0] == ""
    right.rename(wrong)
    assert identify(wrong)[0] == name
