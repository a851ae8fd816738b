"""Datasets and corpora, one module each: a module registers what it reads, and nothing else lists it by name.

A `Dataset` makes one-class problems (`Split`), a `Corpus` gives auxiliary anomalies for Outlier Exposure. A new
dataset is one module here that registers itself in `DATASETS`, and one recipe.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fcdd.errors import DataError
from fcdd.registry import Registry

if TYPE_CHECKING:  # a line PC reads folders without torch
    from torch import Tensor

    from fcdd.images import Fit


class Source(Protocol):
    """Images addressed by index. A uint8 tensor (N, C, H, W) is one; `fcdd.data.sources.Images` decodes on demand."""

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
    nominal_paths: Sequence[Path] = ()  # files of `nominal` and of `test`, in their order, where they are files:
    test_paths: Sequence[Path] = ()  # a model that is used on files must be calibrated on files


@dataclass(frozen=True)
class Subset:
    """The images of `source` at `indices` (n,), as a source of their own."""

    source: Source
    indices: Tensor

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, indices: Tensor, /) -> Tensor:
        return self.source[self.indices[indices]]


@dataclass(frozen=True)
class Problem:
    """What a dataset is asked for: one class below a folder, and the recipe's values that change what is read."""

    root: Path
    normal: str  # the nominal class (VOC: the anomalous one)
    size: int  # side at which images are kept, in pixels
    labelled: bool = False  # true anomalies join training
    authors_protocol: bool = False  # … and stay in the test set, as in the authors' code
    seed: int = 0  # draws which anomalies those are


@dataclass(frozen=True)
class Dataset:
    """One dataset of the paper: all that the rest of the program has to know of it."""

    title: str  # in tables
    classes: Sequence[str]  # in the paper's order
    read: Callable[[Problem], Split]
    files: Sequence[str]  # glob patterns below the data folder of what `read` looks at; {normal} is the class
    eta: float  # quantile of the contrast curve in the paper's figures …
    short: int  # epochs of the short budget
    smoke: Mapping[str, Any] = field(default_factory=lambda: {"epochs": 1})  # recipe values of the smoke budget
    class_eta: float | None = None  # … and in its class-wise figures, where that is another
    fit: Fit = "crop"  # how the images of a corpus come to this dataset's size
    found: Callable[[Path], Sequence[str]] | None = None  # classes below a folder; None: always all of them
    meant: Callable[[str], str] | None = None  # a user's word for a class → the class, DataError where there is none
    left_out: Callable[[str], Collection[str]] | None = None  # nominal class → WordNet ids no corpus may hold
    draws_labelled: bool = False  # labelled anomalies are drawn from the test images
    authors: Mapping[str, Any] = field(default_factory=dict)  # recipe values of the authors' code where they differ
    revision: int = 1  # raised when `read` makes something else of the same files: old results no longer count

    def present(self, root: Path) -> list[str]:
        """The classes below `root`; all of the dataset where none is there, so that a message can name them."""
        return list((self.found(root) if self.found else ()) or self.classes)

    def named(self, word: str, root: Path) -> str | None:
        """The class present below `root` that a user's word means; None where it means none."""
        try:
            wanted = self.meant(word) if self.meant else word
        except DataError:
            return None
        return next((one for one in self.present(root) if self._same(one, wanted)), None)

    def _same(self, one: str, wanted: str) -> bool:
        return (self.meant(one) if self.meant else one).lower() == wanted.lower()


@dataclass(frozen=True)
class Corpus:
    """Auxiliary anomalies for Outlier Exposure."""

    read: Callable[[Path, Collection[str]], tuple[Tensor | list[Path], str]]
    """Folder and WordNet ids to leave out → images uint8 (N, C, H, W) or image files, and their provenance."""
    files: Sequence[str]  # glob patterns below the data folder of what `read` looks at


# Of datasets of large images, whose networks then run in a second: a smoke budget shows that all works, and no more.
SMALL_SMOKE: Mapping[str, Any] = {"epochs": 1, "passes": 1, "size": 32, "stored": 36, "sigma": 2.0, "batch": 16}

DATASETS: Registry[Dataset] = Registry("dataset", __name__)
CORPORA: Registry[Corpus] = Registry("corpus for Outlier Exposure", __name__)
