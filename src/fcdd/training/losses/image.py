"""The paper's eq. 2: image by image, on the mean of the cells."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from fcdd.nn import objectives
from fcdd.training.losses import LOSSES, Loss
from fcdd.training.methods import Batch


def of(A: Tensor, full: Callable[[], Tensor], batch: Batch) -> Tensor:
    """The paper's eq. 2: image by image, on the mean of the cells."""
    return objectives.fcdd(A, batch.y)


LOSSES.register("fcdd")(Loss(of))
