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
from fcdd.detector import looks
from fcdd.detector.calibration import BY_HAND, Calibration, Verdict
from fcdd.detector.outline import outline
from fcdd.detector.result import Grid, Result, score_of
from fcdd.detector.settings import Settings
from fcdd.detector.thresholds import clear
from fcdd.detector.versions import Versions
from fcdd.errors import CalibrationError, ModelError
from fcdd.framing import Fit, Frame
from fcdd.nn.architecture import AnyArchitecture, architecture_from
from fcdd.progress import bar
from fcdd.reading import ImageLike, digest, name_of, pixels, stream
from fcdd.regions import regions

T = TypeVar("T")
Then = Callable[[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.float32]], T]  # pixels, network's input, cells
BATCH = 4
TOP = 0.01  # share of the strongest cells whose mean is the score, where nothing else is said
REJECT, REVIEW = 0.01, 0.05  # levels where nothing else is asked for and enough images support them


class Judge(ABC):
    """Scores, explains and judges images by cells that a subclass computes, and sets its thresholds anew."""

    def __init__(self, settings: Settings, seed: int) -> None:
        self.settings, self.seed = settings, seed
        self.framing: Fit | None = None  # what becomes of images of another aspect; None refuses them
        self.architecture: AnyArchitecture | None = settings.architecture
        self.card: dict[str, Any] = {}
        self._grid: Grid | None = None
        self._inside: NDArray[np.bool_] | None = None
        self._calibration: Calibration | None = None
        self._versions: Versions | None = None
        self.top = TOP if settings.top is None else settings.top
        self.looks: looks.Floats | None = None  # of the calibration images, (n, traits)

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
        return np.array(list(self._each(given, lambda _pixels, _input, cells: self.score(cells))), np.float64)

    def inspect(self, given: Iterable[ImageLike]) -> Iterator[tuple[NDArray[np.uint8], Result]]:
        """Every image's pixels, RGB uint8 (H, W, 3), with its result."""
        return self._each(given, self._result)

    def score(self, cells: NDArray[np.float32]) -> float:
        """The score of an image from its cells (h, w)."""
        return score_of(cells, self.inside, self.top)

    def judge(self, cells: NDArray[np.float32], size: tuple[int, int]) -> Result:
        """The verdict on one image of `size` (H, W) from its cells (h, w)."""
        frame, cells = self._frame_of(size), self._within(cells, size)
        _, _, *looked_at = frame.box(size)
        score, calibration = self.score(cells), self.calibration
        heatmap = self.grid.heatmap(cells, (looked_at[0], looked_at[1]))
        verdict, limit = calibration.verdict(score), calibration.limits.review
        if verdict is Verdict.OK:
            level, marked = max(limit, float(heatmap.max())), np.zeros(heatmap.shape, np.bool_)
        else:
            level, marked = outline(self.grid, cells, heatmap, self.inside, self.top, limit, calibration.usual)
        heatmap, marked = frame.back(heatmap, size), frame.back(marked, size)
        return Result(
            score=score,
            p_value=calibration.p_value(score),
            verdict=verdict,
            heatmap=heatmap,
            regions=regions(heatmap, marked),
            cells=cells,
            marked=marked,
            level=level,
        )

    def _result(
        self, array: NDArray[np.uint8], seen: NDArray[np.uint8], cells: NDArray[np.float32]
    ) -> tuple[NDArray[np.uint8], Result]:
        return array, replace(self.judge(cells, (array.shape[0], array.shape[1])), looks=looks.measure(seen))

    def looked(self, seen: Sequence[looks.Floats], level: float = looks.LEVEL) -> looks.Comparison | None:
        """Whether images with the looks `seen` (`Result.looks`) look as the calibration images did; None where the
        model does not know how those looked."""
        if self.looks is None:
            return None
        return looks.compare(self.looks, np.array(seen).reshape(-1, len(looks.TRAITS)), level)

    def _each(self, given: Iterable[ImageLike], then: Then[T]) -> Iterator[T]:
        """Call `then` with every image's pixels, input and cells; what it returns, in the images' order."""
        with self._workers() as workers:
            yield from stream(given, lambda batch: self._see(batch, then), BATCH, workers)

    def _see(self, given: Sequence[ImageLike], then: Then[T]) -> list[T]:
        """Call `then` with each image's pixels, what the network is given of it, and its cells (h, w), which are zero
        outside the region of interest."""
        arrays = [pixels(image) for image in given]
        inputs = np.stack(
            [self.input(a, name_of(image, i)) for i, (a, image) in enumerate(zip(arrays, given, strict=True))]
        )
        maps = np.where(self.inside, self._cells(inputs), np.float32(0))
        cells = [self._within(one, array.shape[:2]) for one, array in zip(maps, arrays, strict=True)]
        return [then(*one) for one in zip(arrays, inputs, cells, strict=True)]

    def input(self, array: NDArray[np.uint8], name: str = "image") -> NDArray[np.uint8]:
        """What the network is given of an image (H, W, 3); ImageError where it has another aspect than trained."""
        size = (array.shape[0], array.shape[1])
        frame = self._frame_of(size)
        frame.check(size, name)
        return images.resize(frame.apply(array), self.grid.shape)

    @property
    def frame(self) -> Frame:
        """The aspect of the images it was trained on, and what becomes of others."""
        return Frame(self.card.get("aspect"), self.framing)

    def _frame_of(self, size: tuple[int, int]) -> Frame:
        """An image of the network's own shape is one that was brought to it, so nothing is left to do."""
        return Frame() if size == self.grid.shape else self.frame

    def _within(self, cells: NDArray[np.float32], size: tuple[int, int]) -> NDArray[np.float32]:
        """The cells (h, w) of an image of `size`, zero where they show its padding."""
        covered = self._frame_of(size).covered(size, self.grid.cells)
        return cells if covered is None else np.where(covered, cells, np.float32(0))

    # --------------------------------------------------------------------------------------------- calibrate

    def calibrate(self, good: Sequence[ImageLike], max_false_rejects: float | None = None, quiet: bool = True) -> None:
        """Replace the calibration by that of other good images, which must not have been trained on."""
        self.refuse_trained(good)
        self._calibrate(good, self._levels(len(good), max_false_rejects), quiet)

    def relevel(self, max_false_rejects: float | None = None) -> None:
        """Set the limits by their levels, as asked or by the settings, from the calibration images that are known."""
        known = self.calibration
        reject, review = self._levels(len(known.scores), max_false_rejects)
        self._calibration = Calibration(known.scores, review, reject, usual=known.usual)

    def _calibrate(self, good: Sequence[ImageLike], levels: tuple[float, float], quiet: bool) -> None:
        """The scores of held-out good images, what their cells usually have, and how the images look."""
        reject, review = levels
        scores, usual, seen = [], [], []

        def look(
            _: NDArray[np.uint8], given: NDArray[np.uint8], cells: NDArray[np.float32]
        ) -> tuple[float, float, looks.Floats]:
            return self.score(cells), float(np.median(cells[self.inside])), looks.measure(given)

        with bar("calibrating", len(good), quiet=quiet) as shown:
            for score, middle, traits in self._each(good, look):
                scores.append(score)
                usual.append(middle)
                seen.append(traits)
                shown.advance(1)
        self._calibration = Calibration(tuple(scores), review, reject, usual=float(np.median(usual)))
        self.looks = looks.some(seen)

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

    def reject_above(self, score: float, way: str = BY_HAND, defects: Sequence[float] = ()) -> None:
        """Reject by this score instead of by the false-reject level.

        `way` says how it was found, and `defects` are the scores of those that it was found or tried with. A threshold
        that stands on a known score is moved just above it.
        """
        found = clear(score, [*self.calibration.scores, *defects])
        self._calibration = replace(self.calibration, reject_above=found, way=way, defects=tuple(defects))

    def undo(self) -> None:
        """Back to the calibration before this one; CalibrationError where none is kept.

        The looks that are kept are those of the last images alone. Where the calibration before was of other images,
        none remain, so that nothing is compared with the wrong ones.
        """
        scores = self.calibration.scores
        self._versions = self.versions.undone()
        self._calibration = self._versions.active.calibration
        if self._calibration.scores != scores:
            self.looks = None

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
    def calibrated(self) -> bool:
        """Whether there are verdicts; else only scores."""
        return self._calibration is not None

    @property
    def versions(self) -> Versions:
        """This calibration and those before it, as the model file keeps them."""
        now = self.calibration
        self._versions = Versions.first(now) if self._versions is None else self._versions.with_active(now)
        return self._versions

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
            "calibration": self.calibration.to_dict() if self.calibrated else None,
            "versions": self.versions.to_dict() if self.calibrated else None,
            "looks": looks.to_dict(self.looks),
            "framing": self.framing,
            "card": self.card,
        }

    def _remember(self, info: dict[str, Any]) -> None:
        """Calibration and card from what `info` gave."""
        self.architecture = architecture_of(info)
        self.top = info.get("top", self.top)  # in the settings, in files of schema 1
        given = info["calibration"]
        if given is not None:  # up to schema 2 the usual heat stood beside the calibration
            self._calibration = Calibration.from_dict({"usual": info.get("pixel_floor", 0.0), **given})
            self._versions = Versions.from_dict(self._calibration, info.get("versions"))
        self.looks = looks.from_dict(info.get("looks"))  # earlier files have none
        self.framing = info.get("framing")
        self.card = info["card"]


def architecture_of(info: Mapping[str, Any]) -> AnyArchitecture | None:
    """The architecture that a model file names, if it does; files of schema 1 have it among their settings."""
    given = info["architecture"] if "architecture" in info else info["settings"].get("architecture")
    return None if given is None else architecture_from(given)


def learnt(value: T | None) -> T:
    if value is None:
        raise ModelError("the detector has not learnt anything yet: call fit, or Detector.load")
    return value
