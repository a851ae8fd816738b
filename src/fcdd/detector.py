"""`Detector`: good pictures in, a calibrated and explainable verdict for every further one out."""

from __future__ import annotations

import hashlib
import math
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np
import torch
from numpy.typing import NDArray

import fcdd
from fcdd import bank, images, modelfile
from fcdd.calibration import Calibration, CalibrationError
from fcdd.data import folder
from fcdd.data.inputs import Inputs, Picture, digest, name_of, pixels, resized, shape_of, stream
from fcdd.defects import gather as gather_defects
from fcdd.defects import train_head
from fcdd.errors import DataError, ModelError
from fcdd.networks.description import Architecture, Description
from fcdd.progress import bar
from fcdd.result import Grid, Result, explain, score_of
from fcdd.seeds import generator_of

T = TypeVar("T")
Then = Callable[[NDArray[np.uint8], NDArray[np.float32]], T]
Mask = NDArray[np.bool_] | str | Path | None
BATCH = 4
FEWEST_GOOD = 10
HEAD_DIMENSIONS = 32  # of the hypersphere that labelled defects train
REJECT, REVIEW = 0.01, 0.05  # levels where nothing else is asked for and enough images support them


@dataclass(frozen=True)
class Settings:
    """The default recipe: one for all parts, nothing to tune."""

    architecture: Architecture = field(default_factory=Architecture)
    smallest: int = 256  # the input has about as many pixels as the good images, within squares of these sides:
    largest: int = 384  # more costs time and shows nothing new, fewer hides small defects
    vectors: int = 120_000  # size of the bank: 120 MB, whatever the number of images
    holdout: float = 0.25  # share of the good images kept from training for calibration
    top: float = 0.01  # share of the strongest cells whose mean is the score
    sigma: float = 8.0  # of the Gaussian that shows a cell, in pixels of the input
    max_false_rejects: float | None = None  # None: 1 %, or the least that the calibration images support
    review: float | None = None  # None: 5 %, or twice as many as are rejected


class Detector:
    """Learns what good parts look like; then scores, explains and judges pictures.

    >>> detector = Detector().fit(["good/1.png", …])
    >>> result = detector.predict("incoming/7.png")
    >>> result.verdict, result.score, result.p_value, result.regions
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        seed: int = 0,
        roi: NDArray[np.bool_] | None = None,
        weights: Path | None = None,
    ) -> None:
        """`roi` (H, W) marks where to look, at any size; `weights` replaces the packaged file of the trunk."""
        self.settings = settings or Settings()
        self.seed, self.roi, self._weights = seed, roi, weights
        self.card: dict[str, Any] = {}
        self._description: Description | None = None
        self._grid: Grid | None = None
        self._inside: NDArray[np.bool_] | None = None
        self._calibration: Calibration | None = None
        self.pixel_threshold = math.inf
        self.pixel_floor = 0.0

    # ------------------------------------------------------------------------------------------------- learn

    def fit(
        self,
        good: Path | str | Sequence[Picture],
        defects: Path | str | Sequence[Picture] | None = None,
        masks: Path | str | Sequence[Mask] | None = None,
        *,
        work: Path | None = None,
        quiet: bool = True,
    ) -> Detector:
        """Learn from good pictures and, where there are some, from labelled defects and their masks.

        Each is a folder (masks are then found by name) or a sequence of files and arrays; a mask may be None. `work`,
        a folder, lets a killed fit go on.
        """
        pictures, labelled, known = _collected(good, defects, masks)
        if len(pictures) < FEWEST_GOOD:
            raise DataError(f"{len(pictures)} good images: at least {FEWEST_GOOD} are needed. Add good images.")
        held = self.held_out(len(pictures))
        kept = sorted(set(range(len(pictures))) - set(held))
        levels = self._levels(len(held))
        if labelled:
            architecture = replace(self.settings.architecture, dimensions=HEAD_DIMENSIONS)
            self.settings = replace(self.settings, architecture=architecture)
        self._begin(self._shape(pictures))
        self.card = _card(pictures, kept, labelled)
        training = Inputs([pictures[i] for i in kept], self.grid.shape)
        self.description.fit_light(_some(training))
        inside = torch.from_numpy(self.inside.ravel())
        vectors = bank.gather(
            self.description, training, inside, self.settings.vectors, self.seed, work, self._identity(), quiet
        )
        self.description.fit(vectors, generator_of(self.seed, "planes"))
        if labelled:
            self._learn(labelled, known, vectors, quiet)
        self._calibrate([pictures[i] for i in held], levels, quiet)
        return self

    def _begin(self, shape: tuple[int, int]) -> None:
        """A description that knows its trunk and nothing of good parts yet, for inputs of `shape`."""
        description = Description(self.settings.architecture)
        description.trunk.load(self._weights)
        grid = Grid(shape, description.field.stride, description.field.start, self.settings.sigma)
        self._settle(description, grid)

    def _settle(self, description: Description, grid: Grid) -> None:
        self._description = description.eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._grid = grid
        self._inside = grid.inside(self.roi)
        if not self._inside.any():
            raise DataError("the region of interest is smaller than one cell of the heatmap; mark a larger one")

    def _identity(self) -> dict[str, Any]:
        """All that the bank's shards depend on, besides the code."""
        return {
            "settings": asdict(self.settings),
            "seed": self.seed,
            "trained": self.card["trained"],  # in their order, on which the shards depend
            "inside": hashlib.sha256(self.inside.tobytes()).hexdigest(),
        }

    def _learn(self, defects: Sequence[Picture], masks: Sequence[Mask], vectors: torch.Tensor, quiet: bool) -> None:
        """Train the head on labelled defects; `vectors` are the bank's."""
        description = self.description
        truths = [m if m is None or isinstance(m, np.ndarray) else images.load_mask(m) for m in masks]
        # The planes alone say what is strange where a defect has no mask: the head has learnt nothing yet.
        head, description.head = description.head, None
        inside = torch.from_numpy(self.inside.ravel())
        cells = gather_defects(description, defects, truths, self.grid.shape, inside, self.seed, quiet)
        description.head = head
        train_head(description, description.whiten(vectors[::2]), cells, self.seed)

    def calibrate(self, good: Sequence[Picture], max_false_rejects: float | None = None, quiet: bool = True) -> None:
        """Replace the calibration by that of other good pictures, which must not have been trained on."""
        self.refuse_trained(good)
        if max_false_rejects is not None:
            self.settings = replace(self.settings, max_false_rejects=max_false_rejects, review=None)
        self._calibrate(good, self._levels(len(good)), quiet)

    def _calibrate(self, good: Sequence[Picture], levels: tuple[float, float], quiet: bool) -> None:
        """Scores of held-out good pictures, their usual heat, and the heat that only the share `reject` reaches."""
        reject, review = levels
        scores, peaks, usual = [], [], []

        def look(_: NDArray[np.uint8], cells: NDArray[np.float32]) -> tuple[float, float, float]:
            heat = self.grid.heatmap(cells, self.grid.shape)
            return score_of(cells, self.inside, self.settings.top), float(heat.max()), float(np.median(heat))

        with bar("calibrating", len(good), quiet=quiet) as shown:
            for score, peak, middle in self._each(good, look):
                scores.append(score)
                peaks.append(peak)
                usual.append(middle)
                shown.advance(1)
        self._calibration = Calibration(tuple(scores), review=review, reject=reject)
        self.pixel_threshold = Calibration(tuple(peaks), review=review, reject=reject).threshold(reject)
        self.pixel_floor = float(np.median(usual))

    def refuse_trained(self, pictures: Sequence[Picture]) -> None:
        """CalibrationError where one of the pictures was trained on: its score says nothing about the next part."""
        seen = set(self.card["trained"])
        repeated = [name_of(picture, i) for i, picture in enumerate(pictures) if digest(picture)[:16] in seen]
        if repeated:
            raise CalibrationError(
                f"{len(repeated)} of these images were trained on, the first is {repeated[0]}; "
                "their scores would promise too much. Give images that the detector has not seen"
            )

    def reject_above(self, score: float) -> None:
        """Reject by this score, found with labelled defects, instead of by the false-reject level."""
        self._calibration = replace(self.calibration, reject_above=score)

    def held_out(self, count: int) -> list[int]:
        """Which of `count` good pictures `fit` keeps from training for calibration."""
        order = torch.randperm(count, generator=generator_of(self.seed, "holdout"))
        return sorted(order[: math.ceil(self.settings.holdout * count)].tolist())

    def _levels(self, images_held: int) -> tuple[float, float]:
        """(reject, review): as asked, or what `images_held` calibration images support."""
        smallest = 1 / (images_held + 1)
        reject = self.settings.max_false_rejects
        if reject is None:
            reject = max(REJECT, smallest)
        elif reject < smallest:
            needed = math.ceil(1 / reject - 1e-9) - 1
            raise CalibrationError(
                f"max false rejects {reject:g} cannot be promised from {images_held} calibration images, the least is "
                f"{smallest:.2g}: {needed - images_held} more calibration images are needed, "
                f"{math.ceil((needed - images_held) / self.settings.holdout)} more good images in training"
            )
        review = self.settings.review
        return reject, max(reject, min(0.5, max(REVIEW, 2 * reject) if review is None else review))

    def _shape(self, pictures: Sequence[Picture]) -> tuple[int, int]:
        """The input's height and width: the good images' median aspect, within the settings' sides, in whole cells."""
        sizes = np.array([shape_of(picture) for picture in pictures], np.float64)
        side = float(np.median(np.sqrt(sizes.prod(1))))
        aspect = float(np.median(sizes[:, 0] / sizes[:, 1]))
        side = min(max(side, self.settings.smallest), self.settings.largest)
        height, width = (16 * max(4, round(side * factor / 16)) for factor in (aspect**0.5, aspect**-0.5))
        return height, width

    # --------------------------------------------------------------------------------------------------- use

    @overload
    def predict(self, picture: Picture) -> Result: ...  # type: ignore[overload-overlap]  # str and bytes are iterable
    @overload
    def predict(self, picture: Iterable[Picture]) -> Iterator[Result]: ...
    def predict(self, picture: Picture | Iterable[Picture]) -> Result | Iterator[Result]:
        """The result of one picture (file, bytes or array), or one after the other of many."""
        if isinstance(picture, str | Path | bytes | np.ndarray):
            return self._see([picture], self._result)[0][1]
        return (result for _, result in self.inspect(picture))

    def score_samples(self, pictures: Iterable[Picture]) -> NDArray[np.float64]:
        """Scores (N,), higher = more anomalous."""
        return np.array(list(self._each(pictures, lambda _, cells: score_of(cells, self.inside, self.settings.top))))

    def inspect(self, pictures: Iterable[Picture]) -> Iterator[tuple[NDArray[np.uint8], Result]]:
        """Every picture's pixels, RGB uint8 (H, W, 3), with its result."""
        return self._each(pictures, self._result)

    def _result(self, array: NDArray[np.uint8], cells: NDArray[np.float32]) -> tuple[NDArray[np.uint8], Result]:
        return array, self.judge(cells, (array.shape[0], array.shape[1]))

    def judge(self, cells: NDArray[np.float32], size: tuple[int, int]) -> Result:
        """The verdict on one image of `size` (H, W) from its cells (h, w)."""
        score = score_of(cells, self.inside, self.settings.top)
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

    def _each(self, pictures: Iterable[Picture], then: Then[T]) -> Iterator[T]:
        """`then` of every picture's pixels and cells.

        One thread a core, each with a batch of its own, is half as fast again as all cores on one batch: the layers
        are too small to share.
        """
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield from stream(pictures, lambda batch: self._see(batch, then), BATCH, threads)
        finally:
            torch.set_num_threads(threads)

    @torch.inference_mode()
    def _see(self, pictures: Sequence[Picture], then: Then[T]) -> list[T]:
        """`then` of each picture's pixels and its cells (h, w), which are zero outside the region of interest."""
        arrays = [pixels(picture) for picture in pictures]
        inputs = torch.from_numpy(np.stack([resized(array, self.grid.shape) for array in arrays])).float()
        maps = self.description(inputs)[:, 0].numpy()
        return [then(a, np.where(self.inside, cells, np.float32(0))) for a, cells in zip(arrays, maps, strict=True)]

    @property
    def description(self) -> Description:
        return _learnt(self._description)

    @property
    def grid(self) -> Grid:
        return _learnt(self._grid)

    @property
    def calibration(self) -> Calibration:
        return _learnt(self._calibration)

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Cells (h, w) inside the region of interest."""
        return _learnt(self._inside)

    # -------------------------------------------------------------------------------------------------- keep

    def save(self, path: Path | str) -> None:
        """Everything in one safetensors file: weights, recipe, calibration and model card."""
        tensors = dict(self.description.state_dict())
        if self.roi is not None:
            tensors["roi"] = torch.from_numpy(self.roi)
        info = {
            "settings": asdict(self.settings),
            "seed": self.seed,
            "grid": asdict(self.grid),
            "calibration": self.calibration.to_dict(),
            "pixel_threshold": self.pixel_threshold,
            "pixel_floor": self.pixel_floor,
            "card": self.card,
        }
        modelfile.write(Path(path), "detector", tensors, info)

    @staticmethod
    def load(path: Path | str) -> Detector:
        """A saved detector; ModelError where the file is damaged, changed, of another kind or too new."""
        tensors, info = modelfile.read(Path(path), "detector")
        settings = dict(info["settings"])
        roi = tensors.pop("roi", None)
        detector = Detector(
            Settings(architecture=Architecture(**settings.pop("architecture")), **settings),
            seed=info["seed"],
            roi=None if roi is None else roi.numpy(),
        )
        description = Description(detector.settings.architecture)
        description.load_state_dict(tensors)
        detector._settle(description, Grid(**{**info["grid"], "shape": tuple(info["grid"]["shape"])}))
        detector._calibration = Calibration.from_dict(info["calibration"])
        detector.pixel_threshold, detector.pixel_floor = info["pixel_threshold"], info["pixel_floor"]
        detector.card = info["card"]
        return detector


def _learnt(value: T | None) -> T:
    if value is None:
        raise ModelError("the detector has not learnt anything yet: call fit, or Detector.load")
    return value


def _collected(
    good: Path | str | Sequence[Picture],
    defects: Path | str | Sequence[Picture] | None,
    masks: Path | str | Sequence[Mask] | None,
) -> tuple[list[Picture], list[Picture], list[Mask]]:
    """Good pictures, labelled defects and a mask or None for each of those, from folders or sequences."""
    if isinstance(good, str | Path) and isinstance(defects, str | Path):
        found = folder.read_folder(Path(good), Path(defects), Path(masks) if isinstance(masks, str | Path) else None)
        return list(found.good), list(found.defects), list(found.masks)
    if isinstance(defects, str | Path) or isinstance(masks, str | Path):
        raise DataError("defects and masks are folders only where good is one; else give sequences of files or arrays")
    pictures: list[Picture] = list(images.find(good)) if isinstance(good, str | Path) else list(good)
    labelled, known = list(defects or []), list(masks or [None] * len(defects or []))
    if len(labelled) != len(known):
        raise DataError(f"{len(labelled)} defects and {len(known)} masks: give one for each, or None")
    return pictures, labelled, known


def _card(pictures: Sequence[Picture], kept: Sequence[int], defects: Sequence[Picture]) -> dict[str, Any]:
    """What the model says of the data it was made from."""
    digests = [digest(picture) for picture in pictures]
    return {
        "good": len(pictures),
        "calibration": len(pictures) - len(kept),
        "defects": len(defects),
        "fingerprint": hashlib.sha256("".join(sorted(digests)).encode()).hexdigest(),
        "trained": [digests[i][:16] for i in kept] + [digest(picture)[:16] for picture in defects],
        "versions": {"fcdd": fcdd.__version__, "torch": torch.__version__, "python": platform.python_version()},
    }


def _some(source: Inputs) -> torch.Tensor:
    """At most 64 of the images, (n, 3, H, W) float in 0…255: the light needs no more."""
    return source[torch.arange(0, len(source), max(1, len(source) // 64))[:64]].float()
