"""`Detector`: good images in, a calibrated and explainable verdict for every further one out."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import fcdd
from fcdd import folders, images, modelfile
from fcdd.anomalies.cues import Cue
from fcdd.data.sources import Images
from fcdd.detector.info import DETECTOR, described
from fcdd.detector.judge import Judge, architecture_of, learnt
from fcdd.detector.result import Grid
from fcdd.detector.settings import Settings
from fcdd.errors import DataError, ModelError
from fcdd.framing import Fit, Frame
from fcdd.nn.architecture import AnyArchitecture, FcnArchitecture
from fcdd.nn.network import CellNetwork, build
from fcdd.nn.prepared import Prepared
from fcdd.reading import ImageLike, digest, name_of, pixels, shape_of
from fcdd.seeds import generator_of
from fcdd.training.learners import LEARNERS, Learner
from fcdd.training.lesson import Lesson
from fcdd.training.parallel import one_thread_each

Mask = NDArray[np.bool_] | str | Path | None
DEFAULT_NETWORK = "efficientnet-lite0"


class Detector(Judge):
    """Learns what good parts look like; then scores, explains and judges images.

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
        framing: Fit | None = None,
    ) -> None:
        """`roi` (H, W) marks where to look, at any size of the images' aspect; `weights` replaces the packaged file of
        the trunk; `framing` says what becomes of images of another aspect than most, which are else refused."""
        super().__init__(settings or Settings(), seed)
        self.roi, self._weights, self.framing = roi, weights, framing
        self._network: CellNetwork | None = None
        self.held_out_defects: list[float] = []  # scores of labelled defects by heads that had not seen them

    # ------------------------------------------------------------------------------------------------- learn

    def fit(
        self,
        good: Path | str | Sequence[ImageLike],
        defects: Path | str | Sequence[ImageLike] | None = None,
        masks: Path | str | Sequence[Mask] | None = None,
        *,
        outliers: Path | str | Sequence[ImageLike] | None = None,
        whole: bool = False,
        cues: Sequence[Cue] = (),
        work: Path | None = None,
        quiet: bool = True,
    ) -> Detector:
        """Learn from good images and, where there are some, from anomalies, by the settings' method.

        Args:
            good: a folder, or a sequence of files, encoded bytes and arrays.
            defects: labelled anomalies, in the same form.
            masks: a folder in which masks are found by name, or one mask or None for each of `defects`.
            outliers: images of other things, as auxiliary anomalies (Outlier Exposure); for the methods that take them.
            whole: the labelled images show other things than the part, not defects on it.
            cues: what is put into images of both classes, so that it tells nothing.
            work: a folder in which a killed fit goes on.
            quiet: no progress is shown.
        """
        given, labelled, known = _collected(good, defects, masks)
        learner = LEARNERS[self.settings.method]
        self._check(given, labelled, known, outliers, whole)
        held = self.held_out(len(given))
        kept = sorted(set(range(len(given))) - set(held))
        levels = self._levels(len(held))
        usual = self.settings.architecture or learner.network(DEFAULT_NETWORK, self.settings.quality)
        self._refuse_unused(usual, cues)
        network = self._start(learner.labelled(usual) if labelled else usual, learner)
        self.top = learner.top if self.settings.top is None else self.settings.top
        shape = self._shape(network, given)
        self.card = _card(given, kept, labelled) | {"whole": whole}
        self._refuse_odd_region(shape)
        self._settle(network, _grid(network, shape, self.settings.sigma))
        if cues:
            self.card["neutralised"] = [hashlib.sha256(repr(cue.to_dict()).encode()).hexdigest()[:16] for cue in cues]
        others = _outliers(outliers)
        if others:
            self.card["outliers"] = len(others)
        trained = self._fitted([given[i] for i in kept])
        lesson = Lesson(
            images=trained,
            good=Images(trained, shape),
            shape=shape,
            inside=torch.from_numpy(self.inside.ravel()),
            seed=self.seed,
            vectors=self.settings.vectors,
            defects=self._fitted(labelled),
            masks=[m if m is None else self.frame.apply(_mask(m)) for m in known],
            outliers=others,
            whole=whole,
            cues=cues,
            epochs=self.settings.epochs,
            work=work,
            identity=self._identity([digest(image)[:16] for image in others]),
            quiet=quiet,
        )
        # So that a model does not depend on their number; the paper's networks learn as a whole and need all threads.
        with nullcontext() if isinstance(network, Prepared) else one_thread_each():
            learner.learn(network, lesson)
        self.held_out_defects = list(lesson.held_out)
        self._calibrate([given[i] for i in held], levels, quiet)
        return self

    def _check(
        self,
        good: Sequence[ImageLike],
        labelled: Sequence[ImageLike],
        masks: Sequence[Mask],
        outliers: object,
        whole: bool,
    ) -> None:
        """DataError where the images are too few, or not what the method or `whole` can use."""
        if whole and (not labelled or any(mask is not None for mask in masks)):
            raise DataError("whole images as anomalies need labelled images, and no masks: those show defects")
        if outliers is not None and not LEARNERS[self.settings.method].outliers:
            able = ", ".join(name for name in LEARNERS if LEARNERS[name].outliers)
            raise DataError(f"method {self.settings.method!r} does not learn from outliers; take one of: {able}")
        if len(good) < folders.FEWEST:
            raise DataError(f"{len(good)} good images: at least {folders.FEWEST} are needed. Add good images.")

    def _refuse_odd_region(self, shape: tuple[int, int]) -> None:
        """DataError where the region of interest has neither the aspect of the images nor that of the input."""
        if self.roi is None:
            return
        height, width = self.roi.shape
        if not self.frame.fits((height, width)) and not Frame(shape[0] / shape[1]).fits((height, width)):
            raise DataError(
                f"the region of interest is {width} × {height} pixels, which is another aspect than that of the good "
                "images. Draw it on one of them"
            )

    def _fitted(self, given: Sequence[ImageLike]) -> list[ImageLike]:
        """The images, those of another aspect brought to the input's shape; ImageError where nothing says how."""
        return [image if self.frame.fits(shape_of(image)) else self._brought(image, i) for i, image in enumerate(given)]

    def _brought(self, image: ImageLike, index: int) -> ImageLike:
        self.frame.check(shape_of(image), name_of(image, index))
        return self.input(pixels(image))

    def _refuse_unused(self, architecture: AnyArchitecture, cues: Sequence[Cue]) -> None:
        """DataError where something was asked for that the network of this architecture would ignore."""
        through_the_loop = isinstance(architecture, FcnArchitecture)
        if self.settings.epochs and not through_the_loop:
            raise DataError("epochs are for the paper's networks (--method fcdd --network vgg11 …); leave them out")
        if cues and through_the_loop:
            raise DataError("cues cannot be neutralised in the paper's networks; train a frozen trunk (--network)")

    def _start(self, architecture: AnyArchitecture, learner: Learner) -> CellNetwork:
        """A network that knows its pretrained weights and nothing of good parts yet."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(generator_of(self.seed, "weights").initial_seed())
            network = build(architecture)
        learner.start(network, self._weights)
        return network

    def _settle(self, network: CellNetwork, grid: Grid) -> None:
        self._network, self._grid, self.architecture = network, grid, network.architecture
        self._inside, self._versions = grid.inside(self.roi), None
        if not self._inside.any():
            raise DataError("the region of interest is smaller than one cell of the heatmap; mark a larger one")

    def _identity(self, outliers: Sequence[str]) -> dict[str, Any]:
        """All that what is kept in `work` depends on, besides the code."""
        return {
            "settings": asdict(self.settings),
            "seed": self.seed,
            "trained": self.card["trained"],  # in their order, on which the shards depend
            "neutralised": self.card.get("neutralised", []),
            "outliers": list(outliers),
            "inside": hashlib.sha256(self.inside.tobytes()).hexdigest(),
        }

    @staticmethod
    def of(
        network: CellNetwork,
        settings: Settings,
        shape: tuple[int, int],
        card: dict[str, Any],
        seed: int = 0,
        held: Sequence[ImageLike] = (),
        quiet: bool = True,
    ) -> Detector:
        """A detector around a network that was trained elsewhere, for inputs of `shape`, calibrated on `held`.

        With fewer than 10 held-out nominal images it is not calibrated: it scores and shows, and gives no verdicts.
        """
        detector = Detector(settings, seed=seed)
        detector.top = 1.0 if settings.top is None else settings.top
        detector._settle(network, _grid(network, shape, settings.sigma))
        detector.card = card | {"calibration": len(held)}
        if len(held) >= folders.FEWEST:
            detector._calibrate(held, detector._levels(len(held)), quiet)
        return detector

    def held_out(self, count: int) -> list[int]:
        """Which of `count` good images `fit` keeps from training for calibration."""
        order = torch.randperm(count, generator=generator_of(self.seed, "holdout"))
        return sorted(order[: self.settings.held(count)].tolist())

    def _shape(self, network: CellNetwork, given: Sequence[ImageLike]) -> tuple[int, int]:
        """The input's height and width: the good images' median aspect, within the settings' sides, in whole cells;
        for a network of the paper, the square that it was made for."""
        if isinstance(network, Prepared):
            return network.network.size, network.network.size
        sizes = np.array([shape_of(image) for image in given], np.float64)
        side = float(np.median(np.sqrt(sizes.prod(1))))
        aspect = aspect_of(given)
        largest = self.settings.largest or LEARNERS[self.settings.method].quality(self.settings.quality).largest
        side = max(min(side, largest), min(self.settings.smallest, largest))
        height, width = (16 * max(4, round(side * factor / 16)) for factor in (aspect**0.5, aspect**-0.5))
        return height, width

    # --------------------------------------------------------------------------------------------------- use

    @contextmanager
    def _workers(self) -> Iterator[int]:
        with one_thread_each() as workers:
            yield workers

    @torch.inference_mode()
    def _cells(self, inputs: NDArray[np.uint8]) -> NDArray[np.float32]:
        maps: NDArray[np.float32] = self.network(torch.from_numpy(inputs).permute(0, 3, 1, 2).float())[:, 0].numpy()
        return maps

    @property
    def network(self) -> CellNetwork:
        """Images (N, 3, H, W) in 0…255 → cells A (N, 1, h, w)."""
        return learnt(self._network)

    # -------------------------------------------------------------------------------------------------- keep

    def save(self, path: Path | str) -> None:
        """Everything in one safetensors file: weights, recipe, calibration and model card."""
        tensors = dict(self.network.state_dict())
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
            architecture = architecture_of(info)
            if architecture is None:
                raise ModelError(f"{path}: names no architecture; it was made by something else than fcdd")
            network = build(architecture)
            network.restore(tensors)
            detector._settle(network.eval().requires_grad_(False), Grid.from_dict(info["grid"]))
            detector._remember(info)
        return detector


def aspect_of(given: Sequence[ImageLike]) -> float:
    """The median of the images' height / width."""
    sizes = np.array([shape_of(image) for image in given], np.float64)
    return float(np.median(sizes[:, 0] / sizes[:, 1]))


def _mask(given: NDArray[np.bool_] | str | Path) -> NDArray[np.bool_]:
    return given if isinstance(given, np.ndarray) else images.load_mask(given)


def _collected(
    good: Path | str | Sequence[ImageLike],
    defects: Path | str | Sequence[ImageLike] | None,
    masks: Path | str | Sequence[Mask] | None,
) -> tuple[list[ImageLike], list[ImageLike], list[Mask]]:
    """Good images, labelled defects and a mask or None for each of those, from folders or sequences."""
    if isinstance(good, str | Path) and isinstance(defects, str | Path):
        found = folders.read_folder(Path(good), Path(defects), Path(masks) if isinstance(masks, str | Path) else None)
        return list(found.good), list(found.defects), list(found.masks)
    if isinstance(defects, str | Path) or isinstance(masks, str | Path):
        raise DataError("defects and masks are folders only where good is one; else give sequences of files or arrays")
    given: list[ImageLike] = list(images.find(good)) if isinstance(good, str | Path) else list(good)
    labelled, known = list(defects or []), list(masks or [None] * len(defects or []))
    if len(labelled) != len(known):
        raise DataError(f"{len(labelled)} defects and {len(known)} masks: give one for each, or None")
    return given, labelled, known


def _grid(network: CellNetwork, shape: tuple[int, int], sigma: float | None) -> Grid:
    """Where the network's cells lie on an input of `shape`; σ is the network's own where None."""
    return Grid(shape, network.field.stride, network.field.start, network.sigma if sigma is None else sigma)


def _outliers(given: Path | str | Sequence[ImageLike] | None) -> list[ImageLike]:
    """Images of other things, from a folder or a sequence."""
    if given is None:
        return []
    found: list[ImageLike] = list(images.find(given)) if isinstance(given, str | Path) else list(given)
    if not found:
        raise DataError(f"{given}: no images in it. Leave outliers out, or give a folder of other images.")
    return found


def _card(given: Sequence[ImageLike], kept: Sequence[int], defects: Sequence[ImageLike]) -> dict[str, Any]:
    """What the model says of the data it was made from."""
    digests = [digest(image) for image in given]
    return {
        "good": len(given),
        "calibration": len(given) - len(kept),
        "defects": len(defects),
        "aspect": aspect_of(given),
        "fingerprint": hashlib.sha256("".join(sorted(digests)).encode()).hexdigest(),
        "trained": [digests[i][:16] for i in kept] + [digest(image)[:16] for image in defects],
        "versions": {"fcdd": fcdd.__version__, "torch": torch.__version__, "python": platform.python_version()},
    }
