"""`fcdd calibrate`: thresholds set anew, without training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from fcdd import folders
from fcdd.cli.common import Json, Threads, app, reported, tell
from fcdd.detector import load
from fcdd.detector.calibration import Calibration
from fcdd.errors import DataError
from fcdd.files import refuse_existing


@dataclass(frozen=True)
class Choice:
    """How to choose the reject threshold from labelled defects; at most one of the three ways."""

    defects: Path | None = None
    miss_rate: float | None = None
    best_f1: bool = False
    cost_false_reject: float | None = None
    cost_escape: float | None = None
    prior: float = 0.01


def calibrate_model(
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
    detector = load(model, threads)
    paths, _ = folders.usable(good, skip_bad=False)
    detector.calibrate(paths, level, quiet=quiet)
    if choice.defects is not None:
        known, _ = folders.usable(choice.defects, skip_bad=False)
        detector.refuse_trained(known)
        scores = detector.score_samples(known).tolist()
        detector.reject_above(_threshold(detector.calibration, scores, choice))
    detector.save(output)
    calibration = detector.calibration
    return {
        "model": str(output),
        "calibration": len(calibration.scores),
        "review_above": calibration.limits.review,
        "reject_above": calibration.limits.reject,
        "guarantee": calibration.promise,
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


@app.command()
def calibrate(
    model: Annotated[Path, typer.Argument(help="A model file of `fcdd train` or `fcdd export`.")],
    good: Annotated[Path, typer.Argument(help="Folder of good images that the model has not seen.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Instead of changing the model file.")] = None,
    max_false_rejects: Annotated[float | None, typer.Option(help="Share of good parts that may be rejected.")] = None,
    defects: Annotated[Path | None, typer.Option(help="Folder of defects the model has not seen.")] = None,
    miss_rate: Annotated[float | None, typer.Option(help="Share of defects that may pass.")] = None,
    best_f1: Annotated[bool, typer.Option(help="The threshold with the best F1.")] = False,
    cost_false_reject: Annotated[float | None, typer.Option(help="Cost of a scrapped good part.")] = None,
    cost_escape: Annotated[float | None, typer.Option(help="Cost of an escaped defect.")] = None,
    prior: Annotated[float, typer.Option(help="Share of defects on the line, for the cost.")] = 0.01,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing output.")] = False,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Set thresholds anew from good images, and defects where there are some, without training."""
    with reported():
        choice = Choice(defects, miss_rate, best_f1, cost_false_reject, cost_escape, prior)
        told = calibrate_model(
            model, good, output or model, max_false_rejects, choice, overwrite, quiet=json_, threads=threads
        )
        tell(
            told,
            json_,
            told["guarantee"],
            f"review above {told['review_above']:.4f}, reject above {told['reject_above']:.4f}",
            f"model     {told['model']}",
        )
