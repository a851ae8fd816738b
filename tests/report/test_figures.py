"""The contact sheet holds every image at its place, and text where text belongs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fcdd.report import contact_sheet

COLOURS = [(220, 30, 30), (30, 220, 30), (30, 30, 220), (220, 220, 30)]


def test_cells_and_text(tmp_path: Path) -> None:
    tiles = [np.full((40, 40, 3), colour, np.uint8) for colour in COLOURS]
    contact_sheet([tiles[:2], tiles[2:]], ["input", "heatmap"], ["good 000", ""], tmp_path / "sheet.png", cell=100)
    sheet = np.asarray(Image.open(tmp_path / "sheet.png"))
    centres = []
    for colour in COLOURS:
        rows, columns = np.nonzero((sheet == colour).all(-1))
        assert rows.size == 100 * 100
        centres.append((rows.mean(), columns.mean()))
    (y0, x0), (y1, x1), (y2, x2), _ = centres
    assert y0 == y1 < y2
    assert x0 == x2 < x1
    dark = sheet.sum(-1) < 200
    assert dark[: int(y0 - 51)].any()  # headings
    left = dark[:, : int(x0 - 51)]
    assert left[int(y0 - 50) : int(y0 + 50)].any()  # the first caption
    assert not left[int(y2 - 50) : int(y2 + 50)].any()


def test_rectangles_grey_masks_and_long_text(tmp_path: Path) -> None:
    row = [np.zeros((30, 90, 3), np.uint8), np.zeros((90, 30), np.uint8), np.ones((9, 9), bool)]
    contact_sheet([row], ["a heading far too long for its column", "b", "c"], ["a\nb c"], tmp_path / "s.jpg", cell=60)
    assert Image.open(tmp_path / "s.jpg").format == "JPEG"
    with pytest.raises(ValueError, match="one caption a row"):
        contact_sheet([row], ["a", "b"], ["x"], tmp_path / "s.png")
