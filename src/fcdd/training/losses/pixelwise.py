"""The paper's eq. 3: pixel by pixel, on the map at full size, where masks are known."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from fcdd.nn import objectives
from fcdd.training.losses import LOSSES, Loss
from fcdd.training.methods import Batch


def of(A: Tensor, full: Callable[[], Tensor], batch: Batch) -> Tensor:
    """The paper's eq. 3: pixel by pixel, on the map at full size, where masks are known."""
    return objectives.fcdd_pixelwise(full(), batch.masks)


LOSSES.register("pixelwise")(Loss(of, masks=True))
