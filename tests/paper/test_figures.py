from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fcdd.paper import figures

from ..toy import stripes, toy_recipe, toy_split, toy_training


def test_spread_takes_both_ends_in_rising_order() -> None:
    scores = [5.0, 1.0, 9.0, 3.0, 7.0, 0.0]
    labels = torch.tensor([1, 1, 1, 1, 1, 0])
    assert figures.spread(scores, labels, 1, 3) == [1, 0, 2]
    assert figures.spread(scores, labels, 1, 9) == [1, 3, 0, 4, 2]
    assert figures.spread(scores, labels, 0, 3) == [5]


def test_heat_is_normalised_over_the_row_or_each_alone() -> None:
    model, _ = toy_training()
    images = torch.cat([stripes(2, False, 1), torch.zeros(1, 1, 28, 28, dtype=torch.uint8)])
    maps = model.heatmaps(images)[:, 0]
    together, alone = figures.heat(model, images), figures.heat(model, images, local=True)
    brightest = int(maps.flatten(1).max(1).values.argmax())
    assert max(picture.max() for picture in together) == together[brightest].max()
    # Alone, every map reaches the end of the scale.
    assert all((picture == alone[0].max((0, 1))).all(2).any() for picture in alone[:1])
    assert {picture.shape for picture in alone} == {(28, 28, 3)}
    assert figures.eta_of(toy_recipe()) == 0.93


def test_inputs_are_what_the_network_is_tested_on() -> None:
    images = stripes(2, True, 3)
    shown = figures.inputs(toy_recipe(), images)
    assert shown[1].shape == (28, 28, 3)
    assert np.array_equal(shown[1][..., 0], images[1, 0].numpy())
    assert figures.truth(toy_split(), [0], 28) == []


def test_sheets_and_curves_are_png_and_pdf(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figures.curves(tmp_path / "a" / "c.png", {"measured": [(2, 0.5), (1, 0.4)], "published": []}, "x", "y")
    picture = np.zeros((8, 8, 3), np.uint8)
    figures.sheet(tmp_path / "s.png", {"input": [picture, picture]}, ["left", "right"])
    for path in (tmp_path / "a" / "c.png", tmp_path / "s.png"):
        assert Image.open(path).size[0] > 200
        assert path.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
