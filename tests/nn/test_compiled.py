"""The network in ONNX Runtime against the same network in torch."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from fcdd.nn.architecture import Architecture
from fcdd.nn.centres import places
from fcdd.nn.compiled import INPUT, Graph
from fcdd.nn.description import Description, coarse_side
from fcdd.nn.trunks import LiteTrunk
from fcdd.seeds import generator_of

EVERY = Architecture(planes=4, directions=3, dimensions=5, width=12, centres=20)


def noise(*shape: int) -> Tensor:
    rough = torch.rand(shape[0], 3, 8, 8, generator=generator_of(1)) * 255
    return torch.nn.functional.interpolate(rough, shape[1:], mode="bilinear")


@pytest.fixture(scope="module")
def network() -> Description:
    """Every part there is, fitted to noise."""
    made = Description(EVERY).eval()
    made.trunk.load()
    made.fit_light(noise(4, 96, 96))
    with torch.no_grad():
        vectors = [made.features(noise(4, 96, 96), coarse).movedim(1, 3).flatten(0, 2) for coarse in (False, True)]
        made.fit(vectors[0], generator_of(0))
        assert made.centres is not None
        side = coarse_side(96) // 8
        where, owners = places(side, side).repeat(4, 1), torch.arange(4).repeat_interleave(side * side)
        made.centres.fit(vectors[1], where, owners, made.trunk.widths, generator_of(0))
        made.weights.copy_(torch.tensor([0.3, 0.2, 0.5]))
    return made


@pytest.mark.parametrize("shape", [(2, 96, 96), (1, 16, 80), (3, 41, 67)])
def test_both_give_the_same_taps(shape: tuple[int, int, int]) -> None:
    trunk = LiteTrunk((0, 4, 10)).eval()
    trunk.load()
    graph = Graph()
    taps = trunk.written(graph, INPUT, *shape[1:])
    found = graph.session([name for name, *_ in taps], threads=1)(noise(*shape))
    for seen, (_, *size), expected in zip(found, taps, trunk(noise(*shape)), strict=True):
        assert list(seen.shape[2:]) == size
        assert torch.allclose(seen, expected, atol=1e-5 * float(expected.abs().max()))


@pytest.mark.parametrize("shape", [(3, 96, 96), (1, 64, 128)])
def test_both_give_the_same_cells(network: Description, shape: tuple[int, int, int]) -> None:
    images = noise(*shape) * 0.7
    with torch.inference_mode():
        fast, fast_sum, seen = network.maps(images), network(images), network.features(images, coarse=True)
    slow = {name: cells.detach() for name, cells in network.maps(images).items()}
    slow_sum = network(images).detach()
    assert set(fast) == set(slow) == {"planes", "centres", "head"}
    for name in slow:
        assert torch.allclose(fast[name], slow[name], atol=1e-4 * float(slow[name].abs().max())), name
    assert torch.allclose(fast_sum, slow_sum, atol=1e-4 * float(slow_sum.abs().max()))
    expected = network.features(images, coarse=True)
    assert torch.allclose(seen, expected, atol=1e-5 * float(expected.abs().max()))


def test_what_changes_in_the_network_is_noticed(network: Description) -> None:
    own = copy.deepcopy(network)
    images = noise(1, 96, 96)
    with torch.inference_mode():
        before = own(images)
    with torch.no_grad():
        own.scale.mul_(2)
    with torch.inference_mode():
        changed = own(images)
    own.load_state_dict(network.state_dict())
    with torch.inference_mode():
        again = own(images)
    assert not torch.allclose(before, changed)
    assert torch.equal(before, again)


def test_a_head_that_is_put_aside_is_noticed(network: Description) -> None:
    own = copy.deepcopy(network)
    with torch.inference_mode():
        assert "head" in own.maps(noise(1, 64, 64))
        own.head = None
        assert "head" not in own.maps(noise(1, 64, 64))
