"""`fcdd calibrate`: thresholds set anew, without training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from fcdd import folders
from fcdd.cli.common import (
    FitOption,
    Json,
    Threads,
    app,
    command,
    not_negative,
    refuse_unused,
    reported,
    share,
    suffixed,
    tell,
)
from fcdd.detector import load, thresholds
from fcdd.detector.calibration import BY_HAND
from fcdd.detector.judge import Judge
from fcdd.errors import FcddError
from fcdd.files import real
from fcdd.framing import Fit
from fcdd.outputs import claimed

PRIOR = 0.01  # share of defects on the line where nothing is said about it


@dataclass(frozen=True)
class Choice:
    """How to choose the reject threshold: by the level of false rejects, by hand, or from labelled defects."""

    max_false_rejects: float | None = None
    threshold: float | None = None
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
        if self.threshold is not None:
            refuse_unused("--threshold says already where to reject", max_false_rejects=self.max_false_rejects, **ways)
            return
        if self.defects is None:
            refuse_unused("needs --defects, the images that the threshold is chosen from", **ways)
            return
        if self.prior is not None and None in costs.values():
            raise FcddError("--prior: needs --cost-false-reject and --cost-escape")
        chosen = [self.miss_rate is not None, self.best_f1, any(cost is not None for cost in costs.values())]
        if sum(chosen) != 1 or (chosen[2] and None in costs.values()):
            raise FcddError(
                "--defects: say in one way how to use them, by --miss-rate, by --best-f1, by --cost-false-reject with "
                "--cost-escape, or by --threshold"
            )

    @property
    def asked(self) -> bool:
        """Whether anything is to be set that needs no new good images."""
        return any(value is not None for value in (self.max_false_rejects, self.threshold, self.defects))

    def found(self, good: Sequence[float], defects: Sequence[float]) -> tuple[float, str] | None:
        """The reject threshold and the way it was found; None where it follows from the level."""
        if self.threshold is not None:
            return self.threshold, BY_HAND
        count = f"from {len(defects)} labelled defects"
        if self.miss_rate is not None:
            found = thresholds.by_miss_rate(good, defects, self.miss_rate)
            return found, f"{count}, so that on average at most {100 * self.miss_rate:.3g} % of such pass"
        if self.best_f1:
            return thresholds.by_f1(good, defects), f"{count}, by the best F1 on them"
        if self.cost_false_reject is None or self.cost_escape is None:
            return None
        prior = PRIOR if self.prior is None else self.prior
        found = thresholds.by_cost(
            good, defects, false_reject=self.cost_false_reject, escape=self.cost_escape, prior=prior
        )
        costs = f"{self.cost_false_reject:g} a false reject and {self.cost_escape:g} an escape"
        return found, f"{count}, by the least cost at {costs}, with {prior:.3g} of the parts defective"


def calibrate_model(
    model: Path,
    good: Path | None,
    output: Path,
    choice: Choice,
    undo: bool,
    overwrite: bool,
    quiet: bool,
    threads: int = 0,
    fit: Fit | None = None,
) -> dict[str, Any]:
    """Set the limits of a saved model anew, or go back to those before, without training; it keeps `fit` for later."""
    suffixed(output, model.suffix)
    if undo and (good is not None or choice.asked):
        raise FcddError("--undo: goes back to the calibration before, and takes no images and no other option")
    if not (undo or good is not None or choice.asked):
        raise FcddError(
            "say what to calibrate by: a folder of good images, --threshold, --max-false-rejects, or --undo"
        )
    same = real(output) == real(model)
    with claimed([output], inputs=[None if same else model, good, choice.defects], overwrite=overwrite or same):
        detector = load(model, threads, fit)
        before = detector.versions.active.number if detector.calibrated else 0
        if undo:
            detector.undo()
        else:
            _set(detector, good, choice, quiet)
        detector.save(output)
    calibration, active = detector.calibration, detector.versions.active
    return {
        "model": str(output),
        "calibration": len(calibration.scores),
        "review_above": calibration.limits.review,
        "reject_above": calibration.limits.reject,
        "guarantee": calibration.promise,
        "version": active.number,
        "version_before": before,
    }


def _set(detector: Judge, good: Path | None, choice: Choice, quiet: bool) -> None:
    """The limits from new good images or the calibration's own, and from defects where there are some."""
    if good is not None:
        paths, _ = folders.usable(good, skip_bad=False)
        detector.calibrate(paths, choice.max_false_rejects, quiet=quiet)
    elif choice.threshold is None:
        detector.relevel(choice.max_false_rejects)
    scores: list[float] = []
    if choice.defects is not None:
        known, _ = folders.usable(choice.defects, skip_bad=False)
        detector.refuse_trained(known)
        scores = detector.score_samples(known).tolist()
    found = choice.found(detector.calibration.scores, scores)
    if found is not None:
        detector.reject_above(*found, scores)


@app.command()
def calibrate(
    model: Annotated[Path, typer.Argument(help="A model file of `fcdd train` or `fcdd export`.")],
    good: Annotated[
        Path | None,
        typer.Argument(help="Folder of good images that the model has not seen; without it, the scores are kept."),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Instead of changing the model file.")] = None,
    max_false_rejects: Annotated[
        float | None, typer.Option(callback=share, help="Share of good parts that may be rejected.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(callback=not_negative, help="Reject above this score, set by hand.")
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
    fit: FitOption = None,
    undo: Annotated[bool, typer.Option("--undo", help="Go back to the calibration before this one.")] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing output.")] = False,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Set thresholds anew from good images, and defects where there are some, without training.

    Every calibration is a version of its own; those before are kept in the model file.
    """
    with reported():
        choice = Choice(
            max_false_rejects, threshold, defects, miss_rate, best_f1, cost_false_reject, cost_escape, prior
        )
        told = calibrate_model(
            model, good, output or model, choice, undo, overwrite, quiet=json_, threads=threads, fit=fit
        )
        tell(
            told,
            json_,
            told["guarantee"],
            f"review above {told['review_above']:.4f}, reject above {told['reject_above']:.4f}",
            _versions(told),
            f"model     {told['model']}",
            then=f"see what these limits do: {command('evaluate', told['model'], 'TEST')}",
        )


def _versions(told: dict[str, Any]) -> str:
    """Which version is active, and how to go back."""
    now, before = told["version"], told["version_before"]
    if now == before:
        return f"version {now} of the calibration stays active: nothing changed"
    if now < before:
        return f"version {now} of the calibration is active again; version {before} is kept in the model file"
    if not before:
        return f"version {now} of the calibration is active, the first"
    undo = command("calibrate", told["model"], "--undo")
    return f"version {now} of the calibration is active; to go back to version {before}: {undo}"
