"""What the inspector's commands do, from folders to files. Each returns what it wants to tell as plain values.

All but training work on a model of either kind, and import torch only for one that needs it.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcdd import images, inspection
from fcdd.calibration import Calibration, drift
from fcdd.data import folder
from fcdd.data.pictures import problems
from fcdd.errors import DataError, FcddError
from fcdd.judge import Judge
from fcdd.report import Card, render
from fcdd.runtime import Runtime
from fcdd.settings import Architecture, Settings


@dataclass(frozen=True)
class TrainOptions:
    """What a user may say about a training besides its images."""

    roi: Path | None = None
    ignore: Path | None = None
    max_false_rejects: float | None = None
    review: float | None = None
    seed: int = 0
    trunk: str = Architecture.trunk
    weights: Path | None = None
    skip_bad: bool = False
    whole: bool = False  # the labelled pictures show other things than the part, not defects on it
    neutralise: Path | None = None  # findings of an audit, whose cues are to tell nothing


def train(
    good: Path,
    defects: Path | None,
    masks: Path | None,
    output: Path,
    options: TrainOptions,
    overwrite: bool = False,
    quiet: bool = False,
) -> dict[str, Any]:
    """Train a detector, save it to `output` and its report beside it."""
    from fcdd.data import cues
    from fcdd.detector import Detector

    page = output.with_suffix(".html")
    refuse_existing([output, page], overwrite)
    begun = time.monotonic()
    found = folder.read_folder(good, defects, masks, skip_bad=options.skip_bad)
    known = cues.read(options.neutralise) if options.neutralise else []
    settings = Settings(Architecture(options.trunk), max_false_rejects=options.max_false_rejects, review=options.review)
    detector = Detector(settings, seed=options.seed, roi=cues.outside(known, _region(options)), weights=options.weights)
    work = output.with_name(f".{output.name}.work")
    pasted = [cue for cue in known if cue.mend == cues.PASTE]
    detector.fit(found.good, found.defects, found.masks, whole=options.whole, cues=pasted, work=work, quiet=quiet)
    detector.save(output)
    shutil.rmtree(work, ignore_errors=True)
    held = [found.good[i] for i in detector.held_out(len(found.good))]
    shown = folder.Labelled(
        [*held, *found.defects],
        [0] * len(held) + [1] * len(found.defects),
        ["good, held out"] * len(held) + [f"{kind}, trained on" for kind in found.kinds],
        [*(None for _ in held), *found.masks],
    )
    _, items, _ = inspection.evaluate(detector, shown, quiet=quiet)
    seconds = time.monotonic() - begun
    subtitle = (
        f"Trained on {len(found.good) - len(held)} good images in {seconds:.0f} s; below are images it did not see"
    )
    render(inspection.report(output.stem, subtitle, items, detector.calibration, model_card(detector)), page)
    return {
        "model": str(output),
        "report": str(page),
        "good": len(found.good),
        "calibration": len(held),
        "defects": len(found.defects),
        "skipped": [str(error) for error in found.bad],
        "seconds": seconds,
        "guarantee": str(detector.calibration.guarantee(detector.calibration.reject)),
    }


def opened(model: Path, threads: int = 0) -> Judge:
    """A saved model: an exported one by its suffix, else a detector, for which torch must be installed."""
    if model.suffix == ".onnx":
        return Runtime(model, threads=threads)
    try:
        import torch
    except ImportError:
        raise FcddError(
            f"{model}: needs torch, which is not installed. Use an exported model (fcdd export, .onnx), "
            "or pip install 'fcdd[train]'"
        ) from None
    from fcdd.detector import Detector

    if threads:
        torch.set_num_threads(threads)
    return Detector.load(model)


def evaluate(
    model: Path, root: Path, page: Path, overwrite: bool, skip_bad: bool, quiet: bool, threads: int = 0
) -> dict[str, Any]:
    """Figures of a saved model on labelled images, and the page that shows them."""
    refuse_existing([page], overwrite)
    detector = opened(model, threads)
    pictures = folder.read_test(root, skip_bad=skip_bad)
    evaluation, items, pixel = inspection.evaluate(detector, pictures, quiet)
    cards = [] if evaluation.aupro is None else [Card("AUPRO", f"{evaluation.aupro:.3f}", "false positives up to 30 %")]
    subtitle = f"{model.name} on {len(items)} images of {root}"
    render(
        inspection.report(model.stem, subtitle, items, detector.calibration, model_card(detector), pixel, cards), page
    )
    return {"report": str(page), **asdict(evaluation)}


def predict(
    model: Path, inputs: Path, output: Path, overwrite: bool, skip_bad: bool, quiet: bool, threads: int = 0
) -> dict[str, Any]:
    """Verdicts of all images of a folder, or of one image, as files in `output`."""
    refuse_existing([output], overwrite)
    detector = opened(model, threads)
    paths, skipped = _usable(inputs, skip_bad)
    root = inputs if inputs.is_dir() else inputs.parent
    with _whole_folder(output) as part:
        begun = time.monotonic()
        rows = inspection.write_results(detector, paths, root, part, quiet)
        seconds = time.monotonic() - begun
    verdicts = dict(Counter(row["verdict"] for row in rows))
    return {
        "output": str(output),
        "images": len(rows),
        "verdicts": verdicts,
        "skipped": skipped,
        "images_per_second": len(rows) / seconds,
        "worst": sorted(rows, key=lambda row: -row["score"])[:10],
    }


@dataclass(frozen=True)
class Choice:
    """How to choose the reject threshold from labelled defects; at most one of the three ways."""

    defects: Path | None = None
    miss_rate: float | None = None
    best_f1: bool = False
    cost_false_reject: float | None = None
    cost_escape: float | None = None
    prior: float = 0.01


def calibrate(
    model: Path,
    good: Path,
    output: Path,
    level: float | None,
    choice: Choice,
    overwrite: bool,
    quiet: bool,
    threads: int = 0,
) -> dict[str, Any]:
    """Calibrate a saved model anew on good images it has not seen, without training."""
    if output != model:
        refuse_existing([output], overwrite)
    detector = opened(model, threads)
    paths, _ = _usable(good, skip_bad=False)
    detector.calibrate(paths, level, quiet=quiet)
    if choice.defects is not None:
        known, _ = _usable(choice.defects, skip_bad=False)
        detector.refuse_trained(known)
        scores = detector.score_samples(known).tolist()
        detector.reject_above(_threshold(detector.calibration, scores, choice))
    detector.save(output)
    calibration = detector.calibration
    return {
        "model": str(output),
        "calibration": len(calibration.scores),
        "review_above": calibration.threshold(calibration.review),
        "reject_above": calibration.reject_above or calibration.threshold(calibration.reject),
        "guarantee": str(calibration.guarantee(calibration.reject)),
    }


def _threshold(calibration: Calibration, defects: Sequence[float], choice: Choice) -> float:
    if choice.miss_rate is not None:
        return calibration.threshold_by_miss_rate(defects, choice.miss_rate)
    if choice.best_f1:
        return calibration.threshold_by_f1(defects)
    if choice.cost_false_reject is not None and choice.cost_escape is not None:
        return calibration.threshold_by_cost(
            defects, false_reject=choice.cost_false_reject, escape=choice.cost_escape, prior=choice.prior
        )
    raise DataError("say how to use the defects: --miss-rate, --best-f1, or --cost-false-reject with --cost-escape")


def export(model: Path, output: Path, good: Path | None, precision: str, quiet: bool) -> dict[str, Any]:
    """Write a saved detector as one ONNX file, checked against it on the images of `good`."""
    from fcdd.detector import Detector
    from fcdd.export import PRECISIONS, export

    chosen = next((known for known in PRECISIONS if known == precision), None)
    if chosen is None:
        raise DataError(f"--precision {precision}: must be {', '.join(PRECISIONS)}")
    paths = None if good is None else _usable(good, skip_bad=False)[0]
    runtime, measured = export(Detector.load(model), output, paths, chosen, quiet=quiet)
    return {
        "model": str(output),
        "precision": precision,
        "parity": runtime.parity,
        "megabytes": output.stat().st_size / 1e6,
        "sentence": str(measured),
    }


def drifted(model: Path, inputs: Path, level: float, threads: int = 0) -> dict[str, Any]:
    """Whether the scores of new, presumably good images still look like those of the calibration."""
    detector = opened(model, threads)
    paths, _ = _usable(inputs, skip_bad=False)
    return asdict(drift(detector.calibration.scores, detector.score_samples(paths).tolist(), level))


def model_card(detector: Judge) -> dict[str, dict[str, str]]:
    """Data, recipe and versions, for the report."""
    card, settings, architecture = detector.card, detector.settings, detector.settings.architecture
    return {
        "Data": {
            "good images": str(card["good"]),
            "held out for calibration": str(card["calibration"]),
            "labelled defects": str(card["defects"]),
            "fingerprint of the good images": card["fingerprint"][:16],
        },
        "Recipe": {
            "trunk": f"{architecture.trunk}, frozen",
            "planes": f"{architecture.planes} with {architecture.directions} directions",
            "input": f"{detector.grid.shape[1]} × {detector.grid.shape[0]} px, one cell per {detector.grid.stride} px",
            "score": f"mean of the strongest {settings.top:.0%} of the cells shown",
            "seed": str(detector.seed),
        },
        "Versions": card["versions"],
    }


def _region(options: TrainOptions) -> NDArray[np.bool_] | None:
    """Where to look: inside --roi, outside --ignore."""
    if options.roi is None and options.ignore is None:
        return None
    roi = None if options.roi is None else images.load_mask(options.roi)
    ignore = None if options.ignore is None else images.load_mask(options.ignore)
    if roi is not None and ignore is not None and roi.shape != ignore.shape:
        raise DataError(f"{options.roi} and {options.ignore} have different sizes; make them equal")
    if roi is None:
        assert ignore is not None
        return ~ignore
    return roi if ignore is None else roi & ~ignore


def _usable(inputs: Path, skip_bad: bool) -> tuple[list[Path], list[str]]:
    """The images of a folder, or the one image given, that decode; and what is wrong with the others."""
    paths = images.find(inputs) if inputs.is_dir() else [inputs]
    bad = problems(paths)
    if bad and not skip_bad:
        listed = "\n".join(str(error) for error in bad)
        raise DataError(
            f"{len(bad)} of {len(paths)} files cannot be used. Repair or remove them, or --skip-bad:\n{listed}"
        )
    unfit = {error.source for error in bad}
    usable = [path for path in paths if str(path) not in unfit]
    if not usable:
        raise DataError(f"{inputs}: no usable images in it")
    return usable, [str(error) for error in bad]


def refuse_existing(outputs: Sequence[Path], overwrite: bool) -> None:
    """DataError where one of `outputs` is there already and may not be replaced."""
    existing = [str(path) for path in outputs if path.exists()]
    if existing and not overwrite:
        raise DataError(f"{', '.join(existing)} exists; choose another -o, or pass --overwrite")


@contextmanager
def _whole_folder(output: Path) -> Iterator[Path]:
    """A folder that appears under its name only when it is complete."""
    part = output.with_name(f".{output.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        yield part
        if output.exists():
            shutil.rmtree(output)
        part.rename(output)
    finally:
        shutil.rmtree(part, ignore_errors=True)
