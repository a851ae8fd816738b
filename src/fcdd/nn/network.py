"""What every model is: a fully convolutional network from an image to the cells A of its heatmap."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from fcdd.nn.architecture import AnyArchitecture, Architecture
from fcdd.nn.fields import Field
from fcdd.registry import Registry


class CellNetwork(nn.Module, ABC):
    """Images (N, 3, H, W), float in 0…255 → cells A (N, 1, h, w) ≥ 0, with h = H // stride and w = W // stride.

    How the cells were learnt, by gradient or in closed form, makes no difference to what can be done with them. All
    that a network needs to read an image is inside of it: its preprocessing, and the light that it was trained under.
    """

    architecture: Any  # one of fcdd.nn.architecture
    field: Field  # receptive field of a cell: size, stride and centre of the first, in pixels of the input
    sigma: float  # of the Gaussian that shows a cell, in pixels of the input
    level: Tensor  # (3,) mean colour of the good images in 0…255

    @abstractmethod
    def forward(self, images: Tensor) -> Tensor:
        """Images (N, 3, H, W) in 0…255 → cells A (N, 1, h, w)."""

    @abstractmethod
    def look(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Images (N, 3, H, W) → cells A (N, 1, h, w), and what the network saw in each, (N, h·w, D).

        Cells that look alike to the network have vectors that are close.
        """

    @property
    def reach(self) -> int:
        """Side in pixels of the square around a cell's centre outside of which, but for the light, nothing counts."""
        return self.field.size

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Fill in the tensors of a model file; those that files of schema 1 lack keep their neutral start."""
        known = self.state_dict()
        self.load_state_dict({**{k: v for k, v in known.items() if k in self.since_schema_1()}, **tensors})

    def since_schema_1(self) -> set[str]:
        """Names of tensors that files of schema 1 do not have."""
        return set()


NETWORKS: Registry[Any] = Registry("kind of network", "fcdd.nn")  # architecture → CellNetwork, by its kind


def build(architecture: AnyArchitecture) -> CellNetwork:
    """The network of an architecture with fresh weights, for evaluation, in the memory layout that is fast on CPUs."""
    network: CellNetwork = NETWORKS[architecture.kind](architecture)
    network.eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network


def untrained(architecture: AnyArchitecture) -> CellNetwork:
    """A network of that architecture with random weights that has seen nothing; where there are planes, these alone."""
    if isinstance(architecture, Architecture) and architecture.planes:
        architecture = replace(architecture, dimensions=0, centres=0)
    return build(architecture)
