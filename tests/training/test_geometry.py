"""GEO's transformations against numpy, and that each image gets the one it is labelled with."""

from __future__ import annotations

import numpy as np
import torch

from fcdd.training import geometry


def by_numpy(image: np.ndarray, index: int) -> np.ndarray:
    turns, mirrored, shift = index // 6, index // 3 % 2, index % 3
    quarter = image.shape[0] // 4
    if shift:
        image = image if shift == 1 else image.T
        image = np.concatenate([image[:, quarter:0:-1], image[:, :-quarter]], 1)
        image = image if shift == 1 else image.T
    image = image[:, ::-1] if mirrored else image
    return np.rot90(image, turns)


def test_every_transformation_is_a_turn_of_a_reflection_of_a_translation() -> None:
    image = torch.arange(64.0).view(1, 1, 8, 8)
    seen = set()
    for index in range(geometry.COUNT):
        moved = geometry.transform(image, index)
        assert np.array_equal(moved[0, 0].numpy(), by_numpy(image[0, 0].numpy(), index))
        seen.add(moved.numpy().tobytes())
    assert len(seen) == geometry.COUNT
    assert torch.equal(geometry.transform(image, 0), image)


def test_each_image_has_its_own_transformation_drawn_uniformly() -> None:
    images = torch.rand(2400, 1, 4, 4)
    moved, drawn = geometry.transform_each(images, torch.Generator().manual_seed(0))
    for at in range(0, 2400, 311):
        assert torch.equal(moved[at], geometry.transform(images[at : at + 1], int(drawn[at]))[0])
    counts = torch.bincount(drawn, minlength=geometry.COUNT)
    assert len(counts) == geometry.COUNT
    assert (counts - 100).abs().max() < 45
    again, _ = geometry.transform_each(images, torch.Generator().manual_seed(0))
    assert torch.equal(again, moved)


def test_the_combinations_of_geo_plus_are_all_different_and_told_by_three_answers() -> None:
    image = torch.arange(64.0).view(1, 1, 8, 8)
    seen = set()
    for index in range(geometry.COMBINED):
        turn, across, down = geometry.answers(index)
        moved = np.pad(image[0, 0].numpy(), 2, mode="reflect")
        top, left = (2 + {0: 0, 1: -2, 2: 2}[way] for way in (down, across))
        moved = np.rot90(moved[top : top + 8, left : left + 8], turn)
        assert np.array_equal(geometry.combined(image, index)[0, 0].numpy(), moved)
        seen.add((turn, across, down))
    assert len(seen) == geometry.COMBINED
