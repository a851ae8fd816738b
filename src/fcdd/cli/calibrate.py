"""`fcdd calibrate`: thresholds set anew, without training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from fcdd import folders
from fcdd.cli.common import Json, Threads, app, not_negative, refuse_unused, reported, share, suffixed, tell
from fcdd.detector import load
from fcdd.detector.calibration import Calibration
from fcdd.errors import FcddError
from fcdd.files import real
from fcdd.outputs import claimed

PRIOR = 0.01  # share of defects on the line where nothing is said about it


@dataclass(frozen=True)
class Choice:
    """How to choose the reject threshold from labelled defects; at most one of the three ways."""

    defects: Path | None = None
    miss_rate: float | None = None
    best_f1: bool = False
    cost_false_reject: float | None = None
    cost_escape: float | None = None
    prior: float | None = None  # None: one part in a hundred

    def __post_init__(self) -> None:
        """FcddError where the options say more, or less, than one way."""
        costs = {"cost_false_reject": self.cost_false_reject, "cost_escape": self.cost_escape}
        ways = {"miss_rate": self.miss_rate, "best_f1": self.best_f1, **costs, "prior": self.prior}
        if self.defects is None:
            refuse_unused("needs --defects, the images that the threshold is chosen from", **ways)
            return
        if self.prior is not None and None in costs.values():
            raise FcddError("--prior: needs --cost-false-reject and --cost-escape")
        chosen = [self.miss_rate is not None, self.best_f1, any(cost is not None for cost in costs.values())]
        if sum(chosen) != 1 or (chosen[2] and None in costs.values()):
            raise FcddError(
                "--defects: say in one way how to use them, by --miss-rate, by --best-f1, or by --cost-false-reject "
                "with --cost-escape"
            )


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
    suffixed(output, model.suffix)
    same = real(output) == real(model)
    with claimed([output], inputs=[None if same else model, good, choice.defects], overwrite=overwrite or same):
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
    assert choice.cost_false_reject is not None
    assert choice.cost_escape is not None
    prior = PRIOR if choice.prior is None else choice.prior
    return calibration.threshold_by_cost(
        defects, false_reject=choice.cost_false_reject, escape=choice.cost_escape, prior=prior
    )


@app.command()
def calibrate(
    model: Annotated[Path, typer.Argument(help="A model file of `fcdd train` or `fcdd export`.")],
    good: Annotated[Path, typer.Argument(help="Folder of good images that the model has not seen.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Instead of changing the model file.")] = None,
    max_false_rejects: Annotated[
        float | None, typer.Option(callback=share, help="Share of good parts that may be rejected.")
    ] = None,
    defects: Annotated[Path | None, typer.Option(help="Folder of defects the model has not seen.")] = None,
    miss_rate: Annotated[float | None, typer.Option(callback=share, help="Share of defects that may pass.")] = None,
    best_f1: Annotated[bool, typer.Option(help="Take the threshold with the best F1.")] = False,
    cost_false_reject: Annotated[
        float | None, typer.Option(callback=not_negative, help="Cost of a scrapped good part.")
    ] = None,
    cost_escape: Annotated[float | None, typer.Option(callback=not_negative, help="Cost of an escaped defect.")] = None,
    prior: Annotated[
        float | None,
        typer.Option(callback=share, help=f"Share of defects on the line, for the cost: {PRIOR} if not said."),
    ] = None,
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
