"""Losses of FCDD by name: what a recipe's `objective` may be. A new one is a new file here. Needs no torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fcdd.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor

    from fcdd.training.methods import Batch


@dataclass(frozen=True)
class Loss:
    """`of(A, full, batch)` is the scalar to minimise.

    A (N, 1, h, w) ≥ 0 are the cells. `full()` gives A′ (N, 1, H, W) at the size of the input, whose level is that of A
    over stride² (Algorithm 1); it is computed only where it is asked for.
    """

    of: Callable[[Tensor, Callable[[], Tensor], Batch], Tensor]
    masks: bool = False  # whether it needs to know where anomalies are


def at_the_level_of(A: Tensor, full: Tensor) -> Tensor:
    """A′ times stride², so that a constant A keeps its value away from the borders."""
    return full * (full.shape[-2] * full.shape[-1] / (A.shape[-2] * A.shape[-1]))


LOSSES: Registry[Loss] = Registry("objective", "fcdd.training.losses")
