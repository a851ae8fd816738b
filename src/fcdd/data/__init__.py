"""Datasets. Every reader gives the same `Split`: one one-class problem with its training and test images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:  # a line PC reads folders without torch
    from torch import Tensor


class Source(Protocol):
    """Images addressed by index. A uint8 tensor (N, C, H, W) is one; `fcdd.data.files.Files` decodes on demand."""

    def __len__(self) -> int: ...

    def __getitem__(self, indices: Tensor, /) -> Tensor:
        """indices (n,) int64 → images (n, C, H, W) uint8."""
        ...


@dataclass(frozen=True)
class Split:
    """One one-class problem. Label 0 is nominal, 1 anomalous, everywhere."""

    name: str
    nominal: Source  # training images, all nominal
    test: Source
    labels: Tensor  # (M,) int64, 0 or 1, one a test image
    kinds: Sequence[str]  # class or defect type of each test image
    provenance: str  # which official files were read, and how many of them, for the tables
    mask: Callable[[int], np.ndarray] | None = None  # test index → bool (H, W) at the mask's original size
    anomalies: Source | None = None  # labelled true anomalies that join training (semi-supervised)
    anomaly_masks: Tensor | None = None  # (K, 1, H, W) uint8, 0 or 1, of `anomalies`


@dataclass(frozen=True)
class Subset:
    """The images of `source` at `indices` (n,), as a source of their own."""

    source: Source
    indices: Tensor

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, indices: Tensor, /) -> Tensor:
        return self.source[self.indices[indices]]
