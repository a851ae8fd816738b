"""`fcdd evaluate`: figures of a model on labelled images, and a page that shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from fcdd import folders
from fcdd.cli.common import (
    FitOption,
    Json,
    SkipBad,
    Threads,
    app,
    command,
    figure_lines,
    reported,
    suffixed,
    tell,
    warned,
)
from fcdd.detector import load
from fcdd.detector.judge import Judge
from fcdd.framing import Fit
from fcdd.outputs import claimed
from fcdd.report import Card, inspection, render


def evaluate_model(
    model: Path,
    root: Path,
    page: Path,
    overwrite: bool,
    skip_bad: bool,
    quiet: bool,
    threads: int = 0,
    fit: Fit | None = None,
) -> dict[str, Any]:
    """Figures of a saved model on labelled images, and the page that shows them."""
    suffixed(page, ".html", ".htm")
    with claimed([page], inputs=[model, root], overwrite=overwrite):
        detector = load(model, threads, fit)
        labelled = folders.read_test(root, skip_bad=skip_bad)
        evaluation, items, pixel = inspection.evaluate(detector, labelled, quiet)
        cards = [] if evaluation.aupro is None else [_aupro(evaluation.aupro)]
        subtitle = f"{model.name} on {len(items)} images of {root.resolve().name}"
        card = inspection.model_card(detector)
        seen = _trained_on(detector, labelled.paths)
        warnings = [seen, evaluation.looks.sentence if evaluation.looks else ""]
        shown = inspection.report(
            model.stem, subtitle, items, detector.calibration, card, pixel, cards, warnings=warnings
        )
        render(shown, page)
    looks = evaluation.looks.to_dict() if evaluation.looks else None
    return {"report": str(page), **asdict(evaluation), "looks": looks, "warnings": [seen] if seen else []}


def _trained_on(detector: Judge, paths: Sequence[Path]) -> str:
    """What is wrong with figures on images that were trained on; empty where there are none."""
    known = sum(detector.trained_on(path) for path in paths)
    if not known:
        return ""
    return (
        f"{known} of these {len(paths)} images were trained on: figures on them promise too much. Leave them out, or "
        "take images that the model has not seen."
    )


def _aupro(value: float) -> Card:
    note = "How much of each defect's area is found, on average while at most 30 % of the good pixels are marked."
    return Card("AUPRO", f"{value:.3f}", note)


@app.command()
def evaluate(
    model: Annotated[Path, typer.Argument(help="A model file of `fcdd train` or `fcdd export`.")],
    test: Annotated[Path, typer.Argument(help="MVTec layout, or good/ and defects/ (and masks/).")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The page to write.")] = None,
    fit: FitOption = None,
    skip_bad: SkipBad = False,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing page.")] = False,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Measure a detector on labelled images and write a page that shows every one of them."""
    with reported():
        page = output or model.with_name(f"{model.stem}-evaluation.html")
        told = evaluate_model(model, test, page, overwrite, skip_bad, quiet=json_, threads=threads, fit=fit)
        tell(
            told,
            json_,
            *figure_lines(told),
            *warned(told),
            f"page      {told['report']}",
            then="open the page in a browser: mistakes stand first. Other limits: "
            + command("calibrate", model, "GOOD", "--max-false-rejects", "0.02"),
        )
