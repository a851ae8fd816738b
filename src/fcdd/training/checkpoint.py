"""The state of a training between two steps, so that a run killed at any moment goes on as if nothing had been."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fcdd import modelfile
from fcdd.errors import ModelError


@dataclass
class Position:
    """Where a training stands: `step` of `epoch` is the next to run."""

    epoch: int = 0
    step: int = 0
    losses: list[float] = field(default_factory=list)  # mean of each finished epoch
    total: float = 0.0  # sum over the samples of the current epoch


def save(
    path: Path, network: nn.Module, optimiser: torch.optim.Optimizer, at: Position, identity: dict[str, Any]
) -> None:
    """Write network, optimiser and position to `path`. No random state is kept: each step draws from its own seed."""
    tensors = {f"network.{name}": tensor for name, tensor in network.state_dict().items()}
    for index, state in optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{index}.{key}": value for key, value in state.items() if value is not None}
    modelfile.write(path, "checkpoint", tensors, {"position": vars(at), "identity": identity})


def restore(path: Path, network: nn.Module, optimiser: torch.optim.Optimizer, identity: dict[str, Any]) -> Position:
    """Put the state of `path` back; a checkpoint of another training is refused."""
    tensors, info = modelfile.read(path, "checkpoint")
    if info["identity"] != identity:
        changed = sorted(
            k for k in identity.keys() | info["identity"].keys() if identity.get(k) != info["identity"].get(k)
        )
        raise ModelError(
            f"{path}: belongs to a training with another {', '.join(changed)}; "
            "choose another output folder, or --overwrite to start anew"
        )
    network.load_state_dict({k.removeprefix("network."): v for k, v in tensors.items() if k.startswith("network.")})
    state: dict[int, dict[str, torch.Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimiser."):
            _, index, key = name.split(".")
            state.setdefault(int(index), {})[key] = tensor
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
    return Position(**info["position"])
