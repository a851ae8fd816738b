"""What all questions start from: the parts as the detector sees them, its cells, and how each cell looks to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from fcdd.detector.calibration import Verdict
from fcdd.detector.detector import Detector
from fcdd.folders import Labelled
from fcdd.progress import bar
from fcdd.reading import ImageLike as Source
from fcdd.reading import pixels, stream
from fcdd.regions import strongest
from fcdd.report.colours import colour, overlay
from fcdd.report.content import thumbnail
from fcdd.training.parallel import one_thread_each

from .findings import Illustration

BATCH = 4
LIMIT = 400  # images: their features take up to half a gigabyte
Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Evidence:
    """N parts through one detector. Arrays are aligned; cells outside the region of interest are zero."""

    detector: Detector
    paths: Sequence[Path]
    kinds: Sequence[str]
    anomalous: NDArray[np.bool_]  # (N,)
    inputs: Pixels  # (N, H, W, 3), resized to the detector's shape
    cells: NDArray[np.float32]  # (N, h, w)
    looks: NDArray[np.float16]  # (N, h·w, D): whitened features of each cell, of unit length
    sizes: Sequence[tuple[int, int]]  # (H, W) of the files

    @cached_property
    def hot(self) -> NDArray[np.intp]:
        """(N, k): the cells whose mean is the score, hottest first, as places in the flattened grid."""
        inside = self.detector.inside.ravel()
        count = strongest(int(inside.sum()), self.detector.top)
        flat = np.where(inside, self.cells.reshape(len(self.cells), -1), -1)
        return np.argsort(-flat, 1, kind="stable")[:, :count]

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """(N,), ≥ 0: the mean of each image's hottest cells."""
        flat = self.cells.reshape(len(self.cells), -1)
        return np.asarray(np.take_along_axis(flat, self.hot, 1).mean(1, dtype=np.float64))

    @property
    def good(self) -> NDArray[np.intp]:
        """Indices of the good images."""
        return np.flatnonzero(~self.anomalous)

    @property
    def bad(self) -> NDArray[np.intp]:
        """Indices of the anomalous images."""
        return np.flatnonzero(self.anomalous)

    @property
    def gap(self) -> float:
        """What a defect adds to the score: median of the anomalous minus median of the good parts.

        Without anomalous parts, or where they score no higher, what it takes to be rejected stands in for it.
        """
        middle = float(np.median(self.scores[self.good]))
        gap = float(np.median(self.scores[self.bad])) - middle if len(self.bad) else 0.0
        return gap if gap > 0 else max(self.detector.calibration.limits.reject - middle, 1e-9)

    def some_good(self, count: int) -> NDArray[np.intp]:
        """Indices of at most `count` good images, evenly over all."""
        return np.asarray(self.good[np.unique(np.linspace(0, len(self.good) - 1, count).astype(int))])

    def rejected(self, scores: Iterable[float]) -> int:
        """How many of `scores` the detector's threshold rejects."""
        return sum(self.detector.calibration.verdict(float(score)) == Verdict.NG for score in scores)

    def shown(self, image: Pixels, cells: NDArray[np.float32] | None = None, side: int = 240) -> str:
        """A data URI of the image (H, W, 3), `side` pixels long, under the heat of `cells` (h, w) where given."""
        return thumbnail(image if cells is None else overlay(image, self._heat(cells)), side)

    def map(self, cells: NDArray[np.float32], side: int = 240) -> str:
        """A data URI of the heat of `cells` (h, w) alone, `side` pixels long."""
        return thumbnail(colour(self._heat(cells)), side)

    def image(self, index: int, caption: str = "") -> Illustration:
        """The image at `index` under its heat, with its kind and name where there is no caption."""
        name = caption or f"{self.kinds[index]}: {self.paths[index].name}"
        return Illustration(name, self.shown(self.inputs[index], self.cells[index]))

    def _heat(self, cells: NDArray[np.float32]) -> NDArray[np.float32]:
        """Heat (H, W) in [0, 1], on one scale for all images of the audit."""
        heatmap = self.detector.grid.heatmap(cells, self.detector.grid.shape)
        return np.asarray(np.clip((heatmap - self.detector.calibration.usual) / self._span, 0, 1), np.float32)

    @cached_property
    def _span(self) -> float:
        """From usual heat to the brightest colour: twice as far as to the review limit, or up to the hottest place of a
        typical anomalous image where that is less, so that what the score rests on is always seen."""
        group = self.bad if len(self.bad) else self.good
        typical = float(np.median(self.cells[group].max((1, 2)))) - self.detector.calibration.usual
        usual = 2 * (self.detector.calibration.limits.review - self.detector.calibration.usual)
        return max(min(usual, typical), 1e-12)


def gather(detector: Detector, parts: Labelled, quiet: bool) -> Evidence:
    """Look at the parts once; of more than `LIMIT` at an even sample of good and anomalous ones."""
    chosen = _sample(np.array(parts.labels))
    paths = [parts.paths[i] for i in chosen]
    found: list[tuple[Pixels, NDArray[np.float32], NDArray[np.float16], tuple[int, int]]] = []
    # One thread a core, each with a batch of its own.
    with one_thread_each() as threads, bar("looking at the parts", len(paths), quiet=quiet) as shown:
        for one in stream(paths, lambda batch: _look(detector, batch), BATCH, threads):
            found.append(one)
            shown.advance(1)
    inputs, cells, looks, sizes = zip(*found, strict=True)
    return Evidence(
        detector,
        paths,
        [parts.kinds[i] for i in chosen],
        np.array([bool(parts.labels[i]) for i in chosen]),
        np.stack(inputs),
        np.stack(cells),
        np.stack(looks),
        sizes,
    )


@torch.inference_mode()
def _look(
    detector: Detector, batch: Sequence[Source]
) -> list[tuple[Pixels, NDArray[np.float32], NDArray[np.float16], tuple[int, int]]]:
    arrays = [pixels(image) for image in batch]
    inputs = np.stack([detector.input(array) for array in arrays])
    A, seen = detector.network.look(torch.from_numpy(inputs).permute(0, 3, 1, 2).float())
    cells = np.where(detector.inside, A[:, 0].numpy(), np.float32(0))
    looks = torch.nn.functional.normalize(seen, dim=2).half().numpy()
    return [(inputs[i], cells[i], looks[i], arrays[i].shape[:2]) for i in range(len(arrays))]


def cells_of(detector: Detector, changed: Sequence[Pixels], title: str, quiet: bool) -> NDArray[np.float32]:
    """Cells (M, h, w) of M changed images (H, W, 3), with a progress bar called `title`."""
    found = []
    with bar(title, len(changed), quiet=quiet) as shown:
        for _, result in detector.inspect(changed):
            found.append(result.cells)
            shown.advance(1)
    return np.stack(found)


def scores_of(detector: Detector, cells: NDArray[np.float32]) -> NDArray[np.float64]:
    """Scores (M,) of cells (M, h, w), as the detector makes them."""
    return np.array([detector.score(one) for one in cells])


def _sample(labels: NDArray[np.int_]) -> list[int]:
    """Indices of at most `LIMIT` images, evenly over each label, in proportion but with at least a third of each."""
    if len(labels) <= LIMIT:
        return list(range(len(labels)))
    good, bad = np.flatnonzero(labels == 0), np.flatnonzero(labels == 1)
    share = min(max(len(bad) / len(labels), 1 / 3 if len(bad) else 0.0), 2 / 3)
    bads = min(len(bad), round(share * LIMIT))
    parts = [
        group[np.linspace(0, len(group) - 1, n).astype(int)] for group, n in ((good, LIMIT - bads), (bad, bads)) if n
    ]
    return sorted(set(np.concatenate(parts).tolist()))
