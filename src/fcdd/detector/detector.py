"""`Detector`: good pictures in, a calibrated and explainable verdict for every further one out."""

from __future__ import annotations

import hashlib
import math
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import fcdd
from fcdd import folders, images, modelfile
from fcdd.anomalies.cues import Cue, Marked
from fcdd.data import Source
from fcdd.data.inputs import Inputs
from fcdd.detector.info import DETECTOR, described
from fcdd.detector.judge import Judge, learnt
from fcdd.detector.result import Grid
from fcdd.detector.settings import Settings
from fcdd.errors import DataError
from fcdd.nn.description import Description
from fcdd.reading import Picture, digest, shape_of
from fcdd.seeds import generator_of
from fcdd.training import bank
from fcdd.training.head import gather as gather_defects
from fcdd.training.head import train_head

Mask = NDArray[np.bool_] | str | Path | None
FEWEST_GOOD = 10
HEAD_DIMENSIONS = 32  # of the hypersphere that labelled defects train


class Detector(Judge):
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
        super().__init__(settings or Settings(), seed)
        self.roi, self._weights = roi, weights
        self._description: Description | None = None

    # ------------------------------------------------------------------------------------------------- learn

    def fit(
        self,
        good: Path | str | Sequence[Picture],
        defects: Path | str | Sequence[Picture] | None = None,
        masks: Path | str | Sequence[Mask] | None = None,
        *,
        whole: bool = False,
        cues: Sequence[Cue] = (),
        work: Path | None = None,
        quiet: bool = True,
    ) -> Detector:
        """Learn from good pictures and, where there are some, from labelled defects and their masks.

        Each is a folder (masks are then found by name) or a sequence of files and arrays; a mask may be None. `whole`
        says that the labelled pictures show other things than the part, not defects on it. `cues` are put into
        pictures of both classes, so that they tell nothing. `work`, a folder, lets a killed fit go on.
        """
        pictures, labelled, known = _collected(good, defects, masks)
        if whole and (not labelled or any(mask is not None for mask in known)):
            raise DataError("whole pictures as anomalies need labelled pictures, and no masks: those show defects")
        if len(pictures) < FEWEST_GOOD:
            raise DataError(f"{len(pictures)} good images: at least {FEWEST_GOOD} are needed. Add good images.")
        held = self.held_out(len(pictures))
        kept = sorted(set(range(len(pictures))) - set(held))
        levels = self._levels(len(held))
        if labelled:
            architecture = replace(self.settings.architecture, dimensions=HEAD_DIMENSIONS)
            self.settings = replace(self.settings, architecture=architecture)
        self._begin(self._shape(pictures))
        self.card = _card(pictures, kept, labelled) | {"whole": whole}
        training: Source = Inputs([pictures[i] for i in kept], self.grid.shape)
        if cues:
            self.card["neutralised"] = [hashlib.sha256(repr(cue.to_dict()).encode()).hexdigest()[:16] for cue in cues]
            training = Marked(training, cues, self.seed)
        self.description.fit_light(_some(training))
        inside = torch.from_numpy(self.inside.ravel())
        vectors = bank.gather(
            self.description, training, inside, self.settings.vectors, self.seed, work, self._identity(), quiet
        )
        self.description.fit(vectors, generator_of(self.seed, "planes"))
        if labelled:
            self._learn(labelled, known, whole, cues, vectors, quiet)
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
            "neutralised": self.card.get("neutralised", []),
            "inside": hashlib.sha256(self.inside.tobytes()).hexdigest(),
        }

    def _learn(
        self,
        defects: Sequence[Picture],
        masks: Sequence[Mask],
        whole: bool,
        cues: Sequence[Cue],
        vectors: torch.Tensor,
        quiet: bool,
    ) -> None:
        """Train the head on labelled defects, or on whole anomalous pictures; `vectors` are the bank's."""
        description = self.description
        truths = [m if m is None or isinstance(m, np.ndarray) else images.load_mask(m) for m in masks]
        # The planes alone say what is strange where a defect has no mask: the head has learnt nothing yet.
        head, description.head = description.head, None
        inside = torch.from_numpy(self.inside.ravel())
        cells = gather_defects(description, defects, truths, self.grid.shape, inside, self.seed, cues, whole, quiet)
        description.head = head
        train_head(description, description.whiten(vectors[::2]), cells, self.seed)

    def held_out(self, count: int) -> list[int]:
        """Which of `count` good pictures `fit` keeps from training for calibration."""
        order = torch.randperm(count, generator=generator_of(self.seed, "holdout"))
        return sorted(order[: math.ceil(self.settings.holdout * count)].tolist())

    def _shape(self, pictures: Sequence[Picture]) -> tuple[int, int]:
        """The input's height and width: the good images' median aspect, within the settings' sides, in whole cells."""
        sizes = np.array([shape_of(picture) for picture in pictures], np.float64)
        side = float(np.median(np.sqrt(sizes.prod(1))))
        aspect = float(np.median(sizes[:, 0] / sizes[:, 1]))
        side = min(max(side, self.settings.smallest), self.settings.largest)
        height, width = (16 * max(4, round(side * factor / 16)) for factor in (aspect**0.5, aspect**-0.5))
        return height, width

    # --------------------------------------------------------------------------------------------------- use

    @contextmanager
    def _workers(self) -> Iterator[int]:
        """One thread a core, each with a batch of its own, is half as fast again as all cores on one batch: the layers
        are too small to share."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield threads
        finally:
            torch.set_num_threads(threads)

    @torch.inference_mode()
    def _cells(self, inputs: NDArray[np.uint8]) -> NDArray[np.float32]:
        maps: NDArray[np.float32] = self.description(torch.from_numpy(inputs).permute(0, 3, 1, 2).float())[:, 0].numpy()
        return maps

    @property
    def description(self) -> Description:
        return learnt(self._description)

    # -------------------------------------------------------------------------------------------------- keep

    def save(self, path: Path | str) -> None:
        """Everything in one safetensors file: weights, recipe, calibration and model card."""
        tensors = dict(self.description.state_dict())
        if self.roi is not None:
            tensors["roi"] = torch.from_numpy(self.roi)
        modelfile.write(Path(path), "detector", tensors, self.info())

    @staticmethod
    def load(path: Path | str) -> Detector:
        """A saved detector; ModelError where the file is damaged, changed, of another kind or too new."""
        tensors, info = modelfile.read(Path(path), "detector")
        with described(path, info, DETECTOR):
            roi = tensors.pop("roi", None)
            settings = Settings.from_dict(info["settings"])
            detector = Detector(settings, seed=info["seed"], roi=None if roi is None else roi.numpy())
            description = Description(detector.settings.architecture)
            description.load_state_dict(tensors)
            detector._settle(description, Grid.from_dict(info["grid"]))
            detector._remember(info)
        return detector


def _collected(
    good: Path | str | Sequence[Picture],
    defects: Path | str | Sequence[Picture] | None,
    masks: Path | str | Sequence[Mask] | None,
) -> tuple[list[Picture], list[Picture], list[Mask]]:
    """Good pictures, labelled defects and a mask or None for each of those, from folders or sequences."""
    if isinstance(good, str | Path) and isinstance(defects, str | Path):
        found = folders.read_folder(Path(good), Path(defects), Path(masks) if isinstance(masks, str | Path) else None)
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


def _some(source: Source) -> torch.Tensor:
    """At most 64 of the images, (n, 3, H, W) float in 0…255: the light needs no more."""
    return source[torch.arange(0, len(source), max(1, len(source) // 64))[:64]].float()
