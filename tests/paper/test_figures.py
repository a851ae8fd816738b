from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fcdd.paper import figures
from fcdd.paper.contrast import Contrast
from fcdd.report.colours import colour

from ..toy import stripes, toy_recipe, toy_split, toy_training


def test_spread_takes_both_ends_in_rising_order() -> None:
    scores = [5.0, 1.0, 9.0, 3.0, 7.0, 0.0]
    labels = torch.tensor([1, 1, 1, 1, 1, 0])
    assert figures.spread(scores, labels, 1, 3) == [1, 0, 2]
    assert figures.spread(scores, labels, 1, 9) == [1, 3, 0, 4, 2]
    assert figures.spread(scores, labels, 0, 3) == [5]


def test_heat_is_normalised_over_a_set_or_each_alone() -> None:
    model, _ = toy_training()
    images = torch.cat([stripes(2, False, 1), torch.zeros(1, 1, 28, 28, dtype=torch.uint8)])
    reference = figures.balanced_contrast(model, toy_split())
    together, alone = figures.heat(model, images, reference), figures.heat(model, images)
    hottest = colour(np.ones((1, 1)))[0, 0]
    assert (alone[0] == hottest).all(2).mean() == pytest.approx(1 - 0.85, abs=0.02)  # the paper's η of Fashion-MNIST
    assert (alone[1] == hottest).all(2).mean() == pytest.approx(1 - 0.85, abs=0.02)
    assert (figures.heat(model, images, eta=0.5)[0] == hottest).all(2).mean() == pytest.approx(0.5, abs=0.02)
    assert not all(np.array_equal(one, other) for one, other in zip(together, alone, strict=True))
    assert {image.shape for image in alone} == {(28, 28, 3)}


def test_the_reference_has_as_many_nominal_as_anomalous_images() -> None:
    model, _ = toy_training()
    split = toy_split()
    few = replace(split, test=split.test[torch.arange(40)], labels=split.labels[:40])  # 30 nominal, 10 anomalous
    evenly = torch.linspace(0, 29, 10).round().long()
    by_hand = torch.cat([split.test[evenly], split.test[torch.arange(30, 40)]])
    maps = torch.cat(list(figures._maps(model, by_hand)))
    found = figures.balanced_contrast(model, few).normalise(maps, 0.85)
    torch.testing.assert_close(found, Contrast().add(maps).normalise(maps, 0.85), atol=2e-3, rtol=0)
    everything = torch.cat(list(figures._maps(model, split.test[torch.arange(40)])))
    assert not torch.allclose(found, Contrast().add(everything).normalise(maps, 0.85), atol=5e-3)


def test_a_flat_map_is_shown_flat() -> None:
    """At σ 1.2 and stride 4 the bare A′ of equal cells is a grid of dots; shown, there is none."""
    model, _ = toy_training()
    with torch.no_grad():
        model.network.head.weight.zero_()  # type: ignore[union-attr,operator]
        model.network.head.bias.fill_(2.0)  # type: ignore[union-attr,operator]
    image = stripes(1, False, 1)
    bare = model.heatmaps(image)
    assert bare.min() < 0.5 * bare.max()
    (shown,) = figures._maps(model, image)
    assert torch.allclose(shown, shown.mean(), rtol=1e-4)
    assert shown.mean() == pytest.approx(model.A(image).mean().item(), rel=1e-4)


def test_the_sheet_of_a_run_has_a_row_of_masks_where_there_are_some(tmp_path: Path) -> None:
    model, _ = toy_training()
    split = toy_split()
    scores = model.scores(split.test[torch.arange(60)]).tolist()
    figures.heatmap_sheet(model, split, scores, tmp_path / "a.png")
    masked = replace(split, mask=lambda index: np.zeros((40, 40), np.bool_))
    figures.heatmap_sheet(model, masked, scores, tmp_path / "b.png")
    plain, taller = Image.open(tmp_path / "a.png"), Image.open(tmp_path / "b.png")
    assert taller.height - plain.height >= figures.CELL
    assert not (tmp_path / "a.pdf").exists()


def test_inputs_are_what_the_network_is_tested_on() -> None:
    images = stripes(2, True, 3)
    shown = figures.inputs(toy_recipe(), images)
    assert shown[1].shape == (28, 28, 3)
    assert np.array_equal(shown[1][..., 0], images[1, 0].numpy())
    assert figures.truth(toy_split(), [0], 28) == {}


def test_sheets_and_curves_are_png_and_pdf(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figures.curves(tmp_path / "a" / "c.png", {"measured": [(2, 0.5), (1, 0.4)], "published": []}, "x", "y")
    image = np.zeros((8, 8, 3), np.uint8)
    figures.sheet(tmp_path / "s.png", {"input": [image, image]}, ["left", "right"])
    for path in (tmp_path / "a" / "c.png", tmp_path / "s.png"):
        assert Image.open(path).size[0] > 200
        assert path.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
