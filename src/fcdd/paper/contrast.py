"""The appendix's contrast curve, over a set of heatmaps of any size in constant memory."""

from __future__ import annotations

from typing import Self

import numpy as np
from torch import Tensor

from fcdd.metrics import BINS, SHIFT


class Contrast:
    """The pixels of a reference set 𝒳 of heatmaps, as I = min((A′ − min 𝒳) / q_η(𝒳 − min 𝒳), 1) needs them.

    Heat is ≥ 0, and the bit pattern of a float32 ≥ 0 grows with its value, so that its upper bits are the bin of a
    histogram that needs no range beforehand: q_η is exact to one part in 2,048.
    """

    def __init__(self) -> None:
        self._counts = np.zeros(BINS, np.int64)
        self._low = float("inf")

    def add(self, maps: Tensor) -> Self:
        """Take maps (N, …) ≥ 0 into the reference set."""
        values = maps.detach().cpu().float().numpy().ravel() + np.float32(0)  # makes −0 a 0, whose pattern is small
        self._counts += np.bincount(values.view(np.uint32) >> SHIFT, minlength=BINS)
        self._low = min(self._low, float(values.min(initial=np.inf)))
        return self

    def merge(self, other: Contrast) -> Self:
        """Take the reference set of another contrast curve into this one."""
        self._counts += other._counts
        self._low = min(self._low, other._low)
        return self

    def normalise(self, maps: Tensor, eta: float) -> Tensor:
        """Maps of any shape → the same in [0, 1]; `eta` in (0, 1] is the quantile that becomes 1."""
        if not 0 < eta <= 1:
            raise ValueError(f"eta {eta}: must lie in (0, 1]")
        below = np.cumsum(self._counts)
        at = int(np.searchsorted(below, eta * below[-1]))
        edges = (np.array([at, at + 1], np.uint32) << SHIFT).view(np.float32)
        scale = float(edges.mean()) - self._low
        return ((maps - self._low) / (scale if scale > 0 else 1.0)).clamp(0, 1)
