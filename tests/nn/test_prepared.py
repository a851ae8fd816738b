"""The paper's networks inside the one interface: the same cells as by hand, for images in 0…255."""

from __future__ import annotations

import pytest
import torch

from fcdd.nn.architecture import FcnArchitecture, SumArchitecture, architecture_from
from fcdd.nn.network import build, untrained
from fcdd.nn.objectives import pseudo_huber
from fcdd.nn.prepared import Prepared
from fcdd.nn.preprocess import Preprocess
from fcdd.nn.total import Sum


def images(count: int, side: int) -> torch.Tensor:
    return torch.randint(0, 256, (count, 3, side, side), generator=torch.Generator().manual_seed(1)).float()


@pytest.mark.parametrize("kind", ["lcn", "standard", "none"])
def test_the_preprocessing_is_inside(kind: str) -> None:
    network = build(FcnArchitecture("cifar", kind))
    assert isinstance(network, Prepared)
    preprocess = Preprocess(kind, (0.1, 0.2, 0.3), (1.5, 2.0, 0.5)) if kind != "none" else Preprocess("none")  # type: ignore[arg-type]
    network.settle(preprocess, torch.tensor([10.0, 20.0, 30.0]))
    x = images(3, 32)
    with torch.no_grad():
        expected = pseudo_huber(network.network(preprocess(x / 255)))
        A, seen = network.look(x)
    torch.testing.assert_close(network(x), expected, rtol=1e-5, atol=1e-6)
    assert A.shape == (3, 1, 8, 8)
    assert seen.shape == (3, 64, 128)
    assert torch.equal(A, network(x))


def test_a_gray_network_sees_the_luma_of_colour_and_gray_images_as_they_are() -> None:
    network = build(FcnArchitecture("fmnist", "none"))
    assert isinstance(network, Prepared)
    gray = images(2, 28)[:, :1].expand(2, 3, 28, 28)
    torch.testing.assert_close(network.prepare(gray), gray[:, :1] / 255)
    red = torch.zeros(1, 3, 28, 28)
    red[:, 0] = 255
    torch.testing.assert_close(network.prepare(red), torch.full((1, 1, 28, 28), 0.299))


def test_a_sum_adds_weighted_cells_on_the_first_grid() -> None:
    architecture = SumArchitecture((FcnArchitecture("cifar", "none"), FcnArchitecture("cifar-field", "none", kernel=5)))
    network = build(architecture)
    assert isinstance(network, Sum)
    network.weights.copy_(torch.tensor([0.5, 2.0]))
    x = images(2, 32)
    first, second = (part(x) for part in network.parts)
    with torch.no_grad():
        assert network(x).shape == (2, 1, 8, 8)
        moved = network._moved(second, 1, x)
        torch.testing.assert_close(network(x), 0.5 * first + 2 * moved)
    A, seen = network.look(x)
    assert torch.equal(A, network(x))
    assert seen.shape == (2, 64, 256)


def test_an_architecture_survives_json() -> None:
    import dataclasses
    import json

    for architecture in (
        FcnArchitecture("vgg11", "lcn", 32),
        SumArchitecture((FcnArchitecture("cifar"), FcnArchitecture("fmnist"))),
    ):
        assert architecture_from(json.loads(json.dumps(dataclasses.asdict(architecture)))) == architecture
    assert untrained(FcnArchitecture("cifar")).field.size == 22
