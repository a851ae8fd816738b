"""`fcdd train`: from a folder of good images to a model and its report."""

from __future__ import annotations

import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from fcdd import folders, images
from fcdd.cli.common import (
    Json,
    Seed,
    SkipBad,
    Threads,
    app,
    refuse_unused,
    reported,
    set_threads,
    share,
    suffixed,
    tell,
)
from fcdd.detector.settings import Settings
from fcdd.errors import DataError
from fcdd.nn.architecture import Architecture
from fcdd.outputs import claimed, together
from fcdd.report import inspection, render


@dataclass(frozen=True)
class TrainOptions:
    """What a user may say about a training besides its images."""

    roi: Path | None = None
    ignore: Path | None = None
    max_false_rejects: float | None = None
    review: float | None = None
    seed: int = 0
    method: str = Settings.method
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
    files = [output, output.with_suffix(".html")]
    read = [good, defects, masks, options.outliers, options.roi, options.ignore, options.weights, options.neutralise]
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
        learner.architecture(options.network),
        method=options.method,
        max_false_rejects=options.max_false_rejects,
        review=options.review,
        epochs=options.epochs,
    )
    detector = Detector(settings, seed=options.seed, roi=cues.outside(known, _region(options)), weights=options.weights)
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
    _, items, _ = inspection.evaluate(detector, shown, quiet=quiet)
    seconds = time.monotonic() - begun
    subtitle = (
        f"Trained on {len(found.good) - len(held)} good images in {seconds:.0f} s; below are images it did not see"
    )
    shown_page = inspection.report(output.stem, subtitle, items, detector.calibration, inspection.model_card(detector))
    with together([output, page]) as draft:
        detector.save(draft / output.name)
        render(shown_page, draft / page.name)
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
        "guarantee": detector.calibration.promise,
    }


def _outliers(options: TrainOptions) -> list[Path] | None:
    """The images of --outliers, or as many of them as --outlier-limit allows, evenly taken."""
    if options.outliers is None:
        return None
    paths, _ = folders.usable(options.outliers, options.skip_bad)
    return paths[:: max(1, -(-len(paths) // options.outlier_limit))] if options.outlier_limit else paths


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
    roi: Annotated[Path | None, typer.Option(help="Mask of where to look.")] = None,
    ignore: Annotated[Path | None, typer.Option(help="Mask of where not to look.")] = None,
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
        typer.Option(help="nominal describes good parts in closed form; fcdd is the paper's; sum adds up both."),
    ] = "nominal",
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
            ignore=ignore,
            max_false_rejects=max_false_rejects,
            review=review,
            seed=seed,
            method=method,
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
            told["guarantee"],
            *(f"skipped {line}" for line in told["skipped"]),
            f"model     {told['model']}",
            f"report    {told['report']}",
        )
