"""Examples of good features, each with its place."""

from __future__ import annotations

import torch
from torch import Tensor

from fcdd.nn.centres import Centres, places
from fcdd.seeds import generator_of

SIDE, CHANNELS, IMAGES = 8, 6, 12


def aligned(count: int, seed: int) -> Tensor:
    """Features (N, C, h, w) of parts that show one thing at the left and another at the right, a little noisy."""
    features = 0.05 * torch.randn(count, CHANNELS, SIDE, SIDE, generator=generator_of(seed))
    features[:, 0, :, : SIDE // 2] += 1
    features[:, 1, :, SIDE // 2 :] += 1
    return features


def fitted(features: Tensor, count: int = 200) -> Centres:
    made = Centres(count, CHANNELS)
    vectors = features.flatten(2).transpose(1, 2).flatten(0, 1)
    where = places(SIDE, SIDE).repeat(len(features), 1)
    owners = torch.arange(len(features)).repeat_interleave(SIDE * SIDE)
    made.fit(vectors, where, owners, [2, 4], generator_of(1))
    return made


def test_good_parts_are_near_and_a_strange_feature_is_far() -> None:
    made = fitted(aligned(IMAGES, 0))
    good = aligned(3, 5)
    assert 0.3 < float(made(good).mean()) < 3  # in the mean over good parts
    strange = good.clone()
    strange[:, 3, 2, 2] += 1
    found = made(strange)[:, 0]
    assert (found.flatten(1).argmax(1) == 2 * SIDE + 2).all()
    assert float(found[:, 2, 2].min()) > 5 * float(made(good).max())


def test_a_thing_at_another_place_is_noticed() -> None:
    made = fitted(aligned(IMAGES, 0))
    turned = aligned(3, 5).flip(3)
    assert float(made(turned).mean()) > 2 * float(made(aligned(3, 5)).mean())


def test_an_image_is_not_compared_with_its_own_examples() -> None:
    features = aligned(IMAGES, 0)
    features[4, 5] += 2  # a good part that looks like no other
    made = fitted(features)
    index = torch.arange(3, 6)
    own, others = made(features[index]), made(features[index], without=index)
    assert float(others[1].mean()) > 10 * float(own[1].mean())
    assert float(others[[0, 2]].mean()) < 3 * float(made(aligned(2, 7)).mean())


def test_every_tap_counts_alike() -> None:
    features = aligned(IMAGES, 0)
    small = features.clone()
    small[:, 2:] *= 1e-3  # the second tap has tiny numbers
    strange = torch.zeros(1, CHANNELS, SIDE, SIDE)
    strange[0, 3, 2, 2] = 1
    tiny = strange.clone()
    tiny[:, 2:] *= 1e-3
    wide, narrow = (
        fitted(features)(aligned(1, 9) + strange),
        fitted(small)(torch.cat([aligned(1, 9)[:, :2], 1e-3 * aligned(1, 9)[:, 2:]], 1) + tiny),
    )
    assert torch.allclose(wide, narrow, rtol=1e-3)
