"""Checkpoints: the state that comes back is the state that was saved, and only into the training it is of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from fcdd.errors import ModelError
from fcdd.training import checkpoint
from fcdd.training.checkpoint import Position

IDENTITY = {"recipe": {"lr": 0.1, "taps": [2, 4]}, "seed": 0}
OPTIMISERS: dict[str, Callable[[Iterator[nn.Parameter]], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "plain sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
}


def fresh(name: str, seed: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    """A small network with a norm, whose running statistics are state too."""
    generator = torch.Generator().manual_seed(seed)
    network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.LeakyReLU(), nn.Conv2d(4, 1, 1))
    for parameter in network.parameters():
        nn.init.normal_(parameter, 0, 0.3, generator=generator)
    return network, OPTIMISERS[name](network.parameters())


def steps(network: nn.Module, optimiser: torch.optim.Optimizer, numbers: range) -> None:
    for number in numbers:
        x = torch.randn(4, 1, 8, 8, generator=torch.Generator().manual_seed(number))
        optimiser.zero_grad()
        network(x).square().mean().backward()
        optimiser.step()


@pytest.mark.parametrize("name", OPTIMISERS)
def test_going_on_from_a_checkpoint_is_bit_identical(tmp_path: Path, name: str) -> None:
    path = tmp_path / "c.safetensors"
    network, optimiser = fresh(name, seed=0)
    steps(network, optimiser, range(5))
    at = Position(epoch=2, step=5, losses=[0.5, 1 / 3], total=1e-7)
    checkpoint.save(path, network, optimiser, at, IDENTITY)
    steps(network, optimiser, range(5, 10))
    other, again = fresh(name, seed=1)
    assert checkpoint.restore(path, other, again, IDENTITY) == at
    steps(other, again, range(5, 10))
    for key, value in network.state_dict().items():
        assert torch.equal(value, other.state_dict()[key]), key


def test_the_first_checkpoint_has_no_optimiser_state_yet(tmp_path: Path) -> None:
    network, optimiser = fresh("adam", seed=0)
    checkpoint.save(tmp_path / "c", network, optimiser, Position(), IDENTITY)
    other, again = fresh("adam", seed=1)
    assert checkpoint.restore(tmp_path / "c", other, again, IDENTITY) == Position(0, 0, [], 0.0)
    assert again.state_dict()["state"] == {}


def test_a_checkpoint_of_another_training_names_what_differs_and_changes_nothing(tmp_path: Path) -> None:
    network, optimiser = fresh("sgd", seed=0)
    checkpoint.save(tmp_path / "c", network, optimiser, Position(), {**IDENTITY, "extra": 1})
    other, again = fresh("sgd", seed=1)
    before = {k: v.clone() for k, v in other.state_dict().items()}
    with pytest.raises(ModelError, match=r"another extra, seed; choose another output folder, or --overwrite"):
        checkpoint.restore(tmp_path / "c", other, again, {**IDENTITY, "seed": 1})
    assert all(torch.equal(v, before[k]) for k, v in other.state_dict().items())


def test_a_torn_or_absent_checkpoint_is_an_error_of_its_own(tmp_path: Path) -> None:
    network, optimiser = fresh("adam", seed=0)
    path = tmp_path / "c"
    with pytest.raises(ModelError, match="no such file"):
        checkpoint.restore(path, network, optimiser, IDENTITY)
    steps(network, optimiser, range(1))
    checkpoint.save(path, network, optimiser, Position(), IDENTITY)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ModelError, match="truncated"):
        checkpoint.restore(path, network, optimiser, IDENTITY)
