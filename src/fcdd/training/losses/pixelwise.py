"""The paper's eq. 3: pixel by pixel, on the map at full size, where masks are known.

`pixelwise` takes A′ as Algorithm 1 gives it. Its level is that of A over stride² (64 on MVTec-AD), so nominal pixels
weigh little beside the logarithm; `pixelwise-cells` takes A′ · stride². docs/results/paper.md has both measured.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from fcdd.nn import objectives
from fcdd.training.losses import LOSSES, Loss, at_the_level_of
from fcdd.training.methods import Batch


def of(A: Tensor, full: Callable[[], Tensor], batch: Batch) -> Tensor:
    """The paper's eq. 3 to the letter."""
    return objectives.fcdd_pixelwise(full(), batch.masks)


def of_cells(A: Tensor, full: Callable[[], Tensor], batch: Batch) -> Tensor:
    """Eq. 3 on A′ at the level of A."""
    return objectives.fcdd_pixelwise(at_the_level_of(A, full()), batch.masks)


LOSSES.register("pixelwise")(Loss(of, masks=True))
LOSSES.register("pixelwise-cells")(Loss(of_cells, masks=True))
