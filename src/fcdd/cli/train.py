"""`fcdd train`: from a folder of good images to a model and its report."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from fcdd import folders, images
from fcdd.check.background import Watch
from fcdd.check.foreground import propose
from fcdd.check.suspects import sentence
from fcdd.cli.common import (
    FitOption,
    Json,
    Seed,
    SkipBad,
    Threads,
    app,
    command,
    refuse_unused,
    reported,
    set_threads,
    share,
    suffixed,
    tell,
)
from fcdd.detector.settings import Settings
from fcdd.errors import DataError
from fcdd.framing import Fit
from fcdd.metrics import auroc, auroc_interval
from fcdd.nn.architecture import Architecture
from fcdd.outputs import claimed, together
from fcdd.report import Card, inspection, render

if TYPE_CHECKING:
    from fcdd.detector.detector import Detector

AUTO = Path("auto")  # instead of a mask: the parts are found on their background


@dataclass(frozen=True)
class TrainOptions:
    """What a user may say about a training besides its images."""

    roi: Path | None = None  # a mask, or AUTO
    fit: Fit | None = None  # what becomes of images of another aspect than most
    ignore: Path | None = None
    max_false_rejects: float | None = None
    review: float | None = None
    seed: int = 0
    method: str = Settings.method
    quality: str = Settings.quality
    network: str = Architecture.trunk
    epochs: int = 0  # of a network of the paper; 0 for its own number
    weights: Path | None = None
    skip_bad: bool = False
    whole: bool = False  # the labelled images show other things than the part, not defects on it
    outliers: Path | None = None  # images of other things, as auxiliary anomalies
    outlier_limit: int = 0  # at most so many of them, 0 for all
    neutralise: Path | None = None  # findings of an audit, whose cues are to tell nothing


def train_model(
    good: Path,
    defects: Path | None,
    masks: Path | None,
    output: Path,
    options: TrainOptions,
    overwrite: bool = False,
    quiet: bool = False,
) -> dict[str, Any]:
    """Train a detector, save it to `output` and its report beside it."""
    if defects is None:
        refuse_unused("only with --defects", masks=masks, whole=options.whole)
    if (options.review or 1) < (options.max_false_rejects or 0):
        raise DataError("--review: must not be below --max-false-rejects, because a rejected part is reviewed as well")
    if options.outliers is None:
        refuse_unused("only with --outliers", outlier_limit=options.outlier_limit or None)
    suffixed(output, ".safetensors")
    files = [output, output.with_suffix(".html"), *([output.with_suffix(".roi.png")] if options.roi == AUTO else [])]
    mask = None if options.roi == AUTO else options.roi
    read = [good, defects, masks, options.outliers, mask, options.ignore, options.weights, options.neutralise]
    with claimed(files, inputs=read, overwrite=overwrite):
        return _trained(good, defects, masks, output, options, quiet)


def _trained(
    good: Path, defects: Path | None, masks: Path | None, output: Path, options: TrainOptions, quiet: bool
) -> dict[str, Any]:
    """What `train_model` does once nothing stands in its way."""
    from fcdd.anomalies import cues
    from fcdd.detector.detector import Detector
    from fcdd.training.learners import LEARNERS

    page = output.with_suffix(".html")
    begun = time.monotonic()
    found = folders.read_folder(good, defects, masks, skip_bad=options.skip_bad)
    known = cues.read(options.neutralise) if options.neutralise else []
    learner = LEARNERS[options.method]
    settings = Settings(
        learner.network(options.network, options.quality),
        method=options.method,
        quality=options.quality,
        max_false_rejects=options.max_false_rejects,
        review=options.review,
        epochs=options.epochs,
    )
    detector = Detector(
        settings,
        seed=options.seed,
        roi=cues.outside(known, _region(options, found.good)),
        weights=options.weights,
        framing=options.fit,
    )
    work = output.with_name(f".{output.name}.work")
    pasted = [cue for cue in known if cue.mend == cues.PASTE]
    detector.fit(
        found.good,
        found.defects,
        found.masks,
        outliers=_outliers(options),
        whole=options.whole,
        cues=pasted,
        work=work,
        quiet=quiet,
    )
    held = [found.good[i] for i in detector.held_out(len(found.good))]
    shown = folders.Labelled(
        [*held, *found.defects],
        [0] * len(held) + [1] * len(found.defects),
        ["good, held out"] * len(held) + [f"{kind}, trained on" for kind in found.kinds],
        [*(None for _ in held), *found.masks],
    )
    watched = Watch(detector, found.good)
    _, items, _ = inspection.evaluate(detector, shown, quiet=quiet, each=watched)
    # Defects that were learnt prove nothing: they are shown, and counted nowhere.
    items = [replace(item, label=None) if item.label else item for item in items]
    seconds = time.monotonic() - begun
    subtitle = (
        f"Trained on {len(found.good) - len(held)} good images in {seconds:.0f} s; below are good images it did not see"
        + (
            f", and the {len(found.defects)} labelled defects it learnt from, which count nowhere"
            if found.defects
            else ""
        )
    )
    card, cards = inspection.model_card(detector), _cross_validated(detector)
    unlike = sentence([path.name for path in held], [item.score for item in items[: len(held)]])
    if unlike:
        unlike += f" {command('check', good, '--against', output)} looks through all of them."
    warnings = [watched.sentence, unlike]
    shown_page = inspection.report(
        output.stem, subtitle, items, detector.calibration, card, cards=cards, warnings=warnings
    )
    proposed = output.with_suffix(".roi.png") if options.roi == AUTO else None
    with together([output, page, *([proposed] if proposed else [])]) as draft:
        detector.save(draft / output.name)
        render(shown_page, draft / page.name)
        if proposed:
            assert detector.roi is not None
            images.save_png(detector.roi, draft / proposed.name)
    shutil.rmtree(work, ignore_errors=True)
    return {
        "model": str(output),
        "method": options.method,
        "report": str(page),
        "good": len(found.good),
        "calibration": len(held),
        "defects": len(found.defects),
        "skipped": [str(error) for error in found.bad],
        "seconds": seconds,
        "roi": {"share": float(detector.inside.mean()), "mask": str(proposed) if proposed else None},
        "cross_validated_auroc": float(cards[0].value) if cards else None,
        "warnings": [warning for warning in warnings if warning],
        "guarantee": detector.calibration.promise,
    }


def _cross_validated(detector: Detector) -> list[Card]:
    """The AUROC of the labelled defects, each scored by a head that had not seen it, against the calibration images."""
    bad, good = detector.held_out_defects, detector.calibration.scores
    if not bad:
        return []
    low, high = auroc_interval([*good, *bad], [0] * len(good) + [1] * len(bad))
    note = (
        f"How often a labelled defect scores higher than a good part, each scored by a head that had not seen it "
        f"({len(bad)} defects in folds). With 95 % confidence between {low:.3f} and {high:.3f}."
    )
    return [Card("Image AUROC, cross-validated", f"{auroc([*good, *bad], [0] * len(good) + [1] * len(bad)):.3f}", note)]


def _outliers(options: TrainOptions) -> list[Path] | None:
    """The images of --outliers, or as many of them as --outlier-limit allows, evenly taken."""
    if options.outliers is None:
        return None
    paths, _ = folders.usable(options.outliers, options.skip_bad)
    return paths[:: max(1, -(-len(paths) // options.outlier_limit))] if options.outlier_limit else paths


def _region(options: TrainOptions, good: Sequence[Path]) -> NDArray[np.bool_] | None:
    """Where to look: inside --roi, which may be found from good images, and outside --ignore."""
    if options.roi is None and options.ignore is None:
        return None
    ignore = None if options.ignore is None else images.load_mask(options.ignore)
    roi = None if options.roi is None else _mask(options.roi, good, None if ignore is None else ignore.shape)
    if roi is not None and ignore is not None and roi.shape != ignore.shape:
        raise DataError(f"{options.roi} and {options.ignore} have different sizes; make them equal")
    if roi is None:
        assert ignore is not None
        return ~ignore
    return roi if ignore is None else roi & ~ignore


def _mask(roi: Path, good: Sequence[Path], shape: tuple[int, ...] | None) -> NDArray[np.bool_]:
    """The mask of --roi; one that is proposed takes the `shape` of the other mask where there is one."""
    if roi != AUTO:
        return images.load_mask(roi)
    found = propose(good).mask
    if shape is None:
        return found
    return np.asarray(images.resize(found.astype(np.uint8) * np.uint8(255), (shape[0], shape[1])) >= 128)


@app.command()
def train(
    good: Annotated[Path, typer.Argument(help="Folder of good images.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")] = Path(
        "model.safetensors"
    ),
    defects: Annotated[Path | None, typer.Option(help="Folder of a few labelled defects.")] = None,
    masks: Annotated[Path | None, typer.Option(help="Folder of the defects' masks.")] = None,
    outliers: Annotated[
        Path | None, typer.Option(help="Folder of images of other things, to learn from as anomalies.")
    ] = None,
    outlier_limit: Annotated[int, typer.Option(min=0, help="At most so many outliers; 0 for all.")] = 0,
    whole: Annotated[
        bool, typer.Option(help="The labelled images show other things than the part, not defects on it.")
    ] = False,
    roi: Annotated[
        Path | None, typer.Option(help="Mask of where to look; auto finds the parts on a plain background.")
    ] = None,
    ignore: Annotated[Path | None, typer.Option(help="Mask of where not to look.")] = None,
    fit: FitOption = None,
    neutralise: Annotated[
        Path | None, typer.Option(help="Findings of `fcdd audit`: their cues shall not count.")
    ] = None,
    max_false_rejects: Annotated[
        float | None, typer.Option(callback=share, help="Share of good parts that may be rejected.")
    ] = None,
    review: Annotated[
        float | None, typer.Option(callback=share, help="Share of good parts that may go to review.")
    ] = None,
    seed: Seed = 0,
    method: Annotated[
        str,
        typer.Option(help="sum is the most accurate; nominal describes good parts alone; fcdd is the paper's."),
    ] = "sum",
    quality: Annotated[
        str, typer.Option(help="Of --method sum: fast, standard, or fine for the last point of accuracy.")
    ] = "standard",
    network: Annotated[
        str,
        typer.Option(
            "--network",
            "--trunk",
            help="A frozen trunk: efficientnet-lite0, efficientnet-lite0-deep (also tells kinds of things apart), "
            "vgg11, vgg16. With --method fcdd a network of the paper too: fmnist, cifar, vgg11, vgg16, cifar-field, "
            "mvtec-field.",
        ),
    ] = "efficientnet-lite0",
    weights: Annotated[
        Path | None, typer.Option(help="File of ImageNet weights; vgg needs one, or none for a random start.")
    ] = None,
    epochs: Annotated[int, typer.Option(min=0, help="Of a network of the paper; 0 for a training of minutes.")] = 0,
    skip_bad: SkipBad = False,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing model and report.")] = False,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Train a detector from good images. A stopped training goes on where it was."""
    with reported(f"Resume with the same command: fcdd {' '.join(sys.argv[1:])}"):
        set_threads(threads)
        options = TrainOptions(
            roi=roi,
            fit=fit,
            ignore=ignore,
            max_false_rejects=max_false_rejects,
            review=review,
            seed=seed,
            method=method,
            quality=quality,
            network=network,
            epochs=epochs,
            weights=weights,
            skip_bad=skip_bad,
            whole=whole,
            outliers=outliers,
            outlier_limit=outlier_limit,
            neutralise=neutralise,
        )
        told = train_model(good, defects, masks, output, options, overwrite, quiet=json_)
        tell(
            told,
            json_,
            f"trained on {told['good'] - told['calibration']} good images"
            + (f" and {told['defects']} defects" if told["defects"] else "")
            + f" in {told['seconds']:.0f} s",
            *([f"looks at {told['roi']['share']:.0%} of the image"] if told["roi"]["share"] < 1 else []),
            told["guarantee"],
            *(f"warning   {line}" for line in told["warnings"]),
            *(f"skipped {line}" for line in told["skipped"]),
            f"model     {told['model']}",
            f"report    {told['report']}",
            *([f"region    {told['roi']['mask']} (change it, and give it to --roi)"] if told["roi"]["mask"] else []),
            then=f"open the report in a browser; then judge parts: {command('predict', output, 'IMAGES', '-o', 'out')}",
        )
