"""What fixes the shapes of a network's tensors, as plain values: a model file keeps them. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fcdd.errors import ModelError


@dataclass(frozen=True)
class Architecture:
    """A frozen trunk with one or more data descriptions on its features, which are summed.

    Planes and centres describe what good parts show, in closed form; the head is a hypersphere that is learnt by
    gradient. See `fcdd.nn.description.Description`. A part with the number 0 is left out.
    """

    trunk: str = "efficientnet-lite0"
    planes: int = 64
    directions: int = 32  # of each plane
    dimensions: int = 0  # of the head's hypersphere
    width: int = 128  # of the head's first layer
    centres: int = 0
    kind: str = "trunk"  # name in fcdd.nn.network.NETWORKS


@dataclass(frozen=True)
class FcnArchitecture:
    """A fully convolutional network of the paper with its preprocessing inside."""

    network: str  # name in fcdd.nn.networks.NETWORKS
    preprocess: str = "lcn"  # lcn, standard or none, see fcdd.nn.preprocess
    dimensions: int = 1  # of the hypersphere
    kernel: int = 0  # of the receptive-field variants; 0 keeps the network's own
    kind: str = "fcn"


@dataclass(frozen=True)
class SumArchitecture:
    """Several networks whose cells are added; the first one's grid is the sum's."""

    parts: tuple[AnyArchitecture, ...]
    kind: str = "sum"


AnyArchitecture = Architecture | FcnArchitecture | SumArchitecture
_KINDS: dict[str, type[Architecture] | type[FcnArchitecture]] = {"trunk": Architecture, "fcn": FcnArchitecture}


def architecture_from(values: Mapping[str, Any]) -> AnyArchitecture:
    """What `dataclasses.asdict` gave, also by way of JSON; files of schema 1 know one kind and do not name it."""
    kind = values.get("kind", "trunk")
    try:
        if kind == "sum":
            return SumArchitecture(tuple(architecture_from(part) for part in values["parts"]))
        return _KINDS[kind](**values)
    except (KeyError, TypeError) as error:
        raise ModelError(f"the model's architecture cannot be read: {error}") from None
