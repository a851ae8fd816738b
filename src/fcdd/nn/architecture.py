"""What fixes the shapes of a network's tensors, as plain values: a model file keeps them. Needs no torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Architecture:
    """What fixes the shapes of a description's tensors."""

    trunk: str = "efficientnet-lite0"
    planes: int = 64
    directions: int = 32
    dimensions: int = 0  # of the hypersphere that labelled defects train; 0 where there are none
