"""The contrast curve over streamed maps, against the formula on all of them at once."""

from __future__ import annotations

import pytest
import torch

from fcdd.nn.upsampling import normalise
from fcdd.paper.contrast import Contrast

GENERATOR = torch.Generator().manual_seed(0)
MAPS = torch.rand(20, 1, 16, 16, generator=GENERATOR).square() * 7 + 0.3


@pytest.mark.parametrize("eta", [0.5, 0.85, 0.99, 1.0])
def test_it_is_the_appendix_formula(eta: float) -> None:
    contrast = Contrast()
    for some in MAPS.split(3):
        contrast.add(some)
    torch.testing.assert_close(contrast.normalise(MAPS, eta), normalise(MAPS, eta, MAPS), atol=2e-3, rtol=0)


def test_merged_it_is_that_of_both_sets() -> None:
    both = Contrast().add(MAPS[:5]).merge(Contrast().add(MAPS[5:]))
    assert torch.equal(both.normalise(MAPS, 0.9), Contrast().add(MAPS).normalise(MAPS, 0.9))


def test_flat_maps_and_bad_quantiles() -> None:
    flat = torch.zeros(2, 1, 4, 4)
    assert Contrast().add(-flat).normalise(flat, 0.9).max() <= 1
    with pytest.raises(ValueError, match="eta"):
        Contrast().add(flat).normalise(flat, 0)
