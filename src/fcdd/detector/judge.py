"""From cells to verdicts: what the trained detector and the exported one share. Needs numpy and Pillow alone."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from fcdd import images
from fcdd.detector.calibration import Calibration, CalibrationError
from fcdd.detector.result import Grid, Result, explain, score_of
from fcdd.detector.settings import Settings
from fcdd.errors import ModelError
from fcdd.nn.architecture import AnyArchitecture, architecture_from
from fcdd.progress import bar
from fcdd.reading import ImageLike, digest, name_of, pixels, stream

T = TypeVar("T")
Then = Callable[[NDArray[np.uint8], NDArray[np.float32]], T]
BATCH = 4
TOP = 0.01  # share of the strongest cells whose mean is the score, where nothing else is said
REJECT, REVIEW = 0.01, 0.05  # levels where nothing else is asked for and enough images support them


class Judge(ABC):
    """Scores, explains and judges images by cells that a subclass computes, and sets its thresholds anew."""

    def __init__(self, settings: Settings, seed: int) -> None:
        self.settings, self.seed = settings, seed
        self.architecture: AnyArchitecture | None = settings.architecture
        self.card: dict[str, Any] = {}
        self._grid: Grid | None = None
        self._inside: NDArray[np.bool_] | None = None
        self._calibration: Calibration | None = None
        self.top = TOP if settings.top is None else settings.top
        self.pixel_threshold = math.inf
        self.pixel_floor = 0.0

    @abstractmethod
    def _cells(self, inputs: NDArray[np.uint8]) -> NDArray[np.float32]:
        """RGB inputs (N, H, W, 3) of the grid's shape → cells A (N, h, w)."""

    @abstractmethod
    def _workers(self) -> AbstractContextManager[int]:
        """How many threads may ask for cells at the same time, while the context lasts."""

    @abstractmethod
    def save(self, path: Path | str) -> None:
        """Everything in one file."""

    # --------------------------------------------------------------------------------------------------- use

    @overload
    def predict(self, image: ImageLike) -> Result: ...  # type: ignore[overload-overlap]  # str and bytes are iterable
    @overload
    def predict(self, image: Iterable[ImageLike]) -> Iterator[Result]: ...
    def predict(self, image: ImageLike | Iterable[ImageLike]) -> Result | Iterator[Result]:
        """The result of one image (file, bytes or array), or one after the other of many."""
        if isinstance(image, str | Path | bytes | np.ndarray):
            return self.predict_arrays([pixels(image)])[0]
        return (result for _, result in self.inspect(image))

    def predict_arrays(self, arrays: Sequence[NDArray[np.uint8]]) -> list[Result]:
        """The results of RGB arrays (H, W, 3) of any sizes, computed as one batch."""
        return [result for _, result in self._see(arrays, self._result)] if arrays else []

    def score_samples(self, given: Iterable[ImageLike]) -> NDArray[np.float64]:
        """Scores (N,), higher = more anomalous."""
        return np.array(list(self._each(given, lambda _, cells: self.score(cells))), np.float64)

    def inspect(self, given: Iterable[ImageLike]) -> Iterator[tuple[NDArray[np.uint8], Result]]:
        """Every image's pixels, RGB uint8 (H, W, 3), with its result."""
        return self._each(given, self._result)

    def score(self, cells: NDArray[np.float32]) -> float:
        """The score of an image from its cells (h, w)."""
        return score_of(cells, self.inside, self.top)

    def judge(self, cells: NDArray[np.float32], size: tuple[int, int]) -> Result:
        """The verdict on one image of `size` (H, W) from its cells (h, w)."""
        score = self.score(cells)
        heatmap = self.grid.heatmap(cells, size)
        calibration = self.calibration
        return Result(
            score=score,
            p_value=calibration.p_value(score),
            verdict=calibration.verdict(score),
            heatmap=heatmap,
            regions=explain(heatmap, self.pixel_threshold),
            cells=cells,
        )

    def _result(self, array: NDArray[np.uint8], cells: NDArray[np.float32]) -> tuple[NDArray[np.uint8], Result]:
        return array, self.judge(cells, (array.shape[0], array.shape[1]))

    def _each(self, given: Iterable[ImageLike], then: Then[T]) -> Iterator[T]:
        """Call `then` with every image's pixels and cells; what it returns, in the images' order."""
        with self._workers() as workers:
            yield from stream(given, lambda batch: self._see(batch, then), BATCH, workers)

    def _see(self, given: Sequence[ImageLike], then: Then[T]) -> list[T]:
        """Call `then` with each image's pixels and its cells (h, w), which are zero outside the region of interest."""
        arrays = [pixels(image) for image in given]
        maps = self._cells(np.stack([images.resize(array, self.grid.shape) for array in arrays]))
        return [then(a, np.where(self.inside, cells, np.float32(0))) for a, cells in zip(arrays, maps, strict=True)]

    # --------------------------------------------------------------------------------------------- calibrate

    def calibrate(self, good: Sequence[ImageLike], max_false_rejects: float | None = None, quiet: bool = True) -> None:
        """Replace the calibration by that of other good images, which must not have been trained on."""
        self.refuse_trained(good)
        self._calibrate(good, self._levels(len(good), max_false_rejects), quiet)

    def _calibrate(self, good: Sequence[ImageLike], levels: tuple[float, float], quiet: bool) -> None:
        """Scores of held-out good images, their usual heat, and the heat that only the share `reject` reaches."""
        reject, review = levels
        scores, peaks, usual = [], [], []

        def look(_: NDArray[np.uint8], cells: NDArray[np.float32]) -> tuple[float, float, float]:
            heat = self.grid.heatmap(cells, self.grid.shape)
            return self.score(cells), float(heat.max()), float(np.median(heat))

        with bar("calibrating", len(good), quiet=quiet) as shown:
            for score, peak, middle in self._each(good, look):
                scores.append(score)
                peaks.append(peak)
                usual.append(middle)
                shown.advance(1)
        self._calibration = Calibration(tuple(scores), review=review, reject=reject)
        self.pixel_threshold = Calibration(tuple(peaks), review=review, reject=reject).threshold(reject)
        self.pixel_floor = float(np.median(usual))

    def trained_on(self, image: ImageLike) -> bool:
        return digest(image)[:16] in self.card["trained"]

    def refuse_trained(self, given: Sequence[ImageLike]) -> None:
        """CalibrationError where one of the images was trained on: its score says nothing about the next part."""
        repeated = [name_of(image, i) for i, image in enumerate(given) if self.trained_on(image)]
        if repeated:
            raise CalibrationError(
                f"{len(repeated)} of these images were trained on, the first is {repeated[0]}; "
                "their scores would promise too much. Give images that the detector has not seen"
            )

    def reject_above(self, score: float) -> None:
        """Reject by this score, found with labelled defects, instead of by the false-reject level."""
        self._calibration = replace(self.calibration, reject_above=score)

    def _levels(self, images_held: int, asked: float | None = None) -> tuple[float, float]:
        """(reject, review): as asked now or in the settings, or what `images_held` calibration images support."""
        smallest = 1 / (images_held + 1)
        reject = self.settings.max_false_rejects if asked is None else asked
        if reject is None:
            reject = max(REJECT, smallest)
        elif reject < smallest:
            needed = math.ceil(1 / reject - 1e-9) - 1
            raise CalibrationError(
                f"max false rejects {reject:g} cannot be promised from {images_held} calibration images, the least is "
                f"{smallest:.2g}: {needed - images_held} more calibration images are needed, "
                f"{math.ceil((needed - images_held) / self.settings.holdout)} more good images in training"
            )
        review = self.settings.review if asked is None else None
        return reject, max(reject, min(0.5, max(REVIEW, 2 * reject) if review is None else review))

    # ------------------------------------------------------------------------------------------------- state

    @property
    def grid(self) -> Grid:
        return learnt(self._grid)

    @property
    def calibration(self) -> Calibration:
        """Thresholds and what they promise; ModelError where the model was saved without."""
        if self._calibration is None and self._grid is not None:
            raise ModelError(
                "the model is not calibrated, so it can give scores and no verdicts. Calibrate it on good images that "
                "it was not trained on: fcdd calibrate MODEL GOOD"
            )
        return learnt(self._calibration)

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Cells (h, w) inside the region of interest."""
        return learnt(self._inside)

    def info(self) -> dict[str, Any]:
        """All but weights and region of interest, as a model file keeps it."""
        return {
            "settings": asdict(self.settings),
            "seed": self.seed,
            "architecture": None if self.architecture is None else asdict(self.architecture),
            "grid": asdict(self.grid),
            "top": self.top,
            "calibration": None if self._calibration is None else self._calibration.to_dict(),
            "pixel_threshold": self.pixel_threshold if math.isfinite(self.pixel_threshold) else None,
            "pixel_floor": self.pixel_floor,
            "card": self.card,
        }

    def _remember(self, info: dict[str, Any]) -> None:
        """Calibration and card from what `info` gave."""
        self.architecture = architecture_of(info)
        self.top = info.get("top", self.top)  # in the settings, in files of schema 1
        given = info["calibration"]
        self._calibration = None if given is None else Calibration.from_dict(given)
        limit = info["pixel_threshold"]
        self.pixel_threshold, self.pixel_floor = math.inf if limit is None else limit, info["pixel_floor"]
        self.card = info["card"]


def architecture_of(info: Mapping[str, Any]) -> AnyArchitecture | None:
    """The architecture that a model file names, if it does; files of schema 1 have it among their settings."""
    given = info["architecture"] if "architecture" in info else info["settings"].get("architecture")
    return None if given is None else architecture_from(given)


def learnt(value: T | None) -> T:
    if value is None:
        raise ModelError("the detector has not learnt anything yet: call fit, or Detector.load")
    return value
