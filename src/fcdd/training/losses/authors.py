"""What the authors' code does instead of eq. 2: image by image, on the map at full size."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from fcdd.nn import objectives
from fcdd.training.losses import LOSSES, Loss
from fcdd.training.methods import Batch


def of(A: Tensor, full: Callable[[], Tensor], batch: Batch) -> Tensor:
    """What the authors' code does instead of eq. 2: image by image, on the map at full size."""
    return objectives.fcdd(full(), batch.y)


LOSSES.register("authors")(Loss(of))
