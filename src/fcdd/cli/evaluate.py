"""`fcdd evaluate`: figures of a model on labelled images, and a page that shows them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from fcdd import folders
from fcdd.cli.common import Json, SkipBad, Threads, app, figure_lines, reported, suffixed, tell
from fcdd.detector import load
from fcdd.outputs import claimed
from fcdd.report import Card, inspection, render


def evaluate_model(
    model: Path, root: Path, page: Path, overwrite: bool, skip_bad: bool, quiet: bool, threads: int = 0
) -> dict[str, Any]:
    """Figures of a saved model on labelled images, and the page that shows them."""
    suffixed(page, ".html", ".htm")
    with claimed([page], inputs=[model, root], overwrite=overwrite):
        detector = load(model, threads)
        labelled = folders.read_test(root, skip_bad=skip_bad)
        evaluation, items, pixel = inspection.evaluate(detector, labelled, quiet)
        cards = [] if evaluation.aupro is None else [_aupro(evaluation.aupro)]
        subtitle = f"{model.name} on {len(items)} images of {root.resolve().name}"
        card = inspection.model_card(detector)
        render(inspection.report(model.stem, subtitle, items, detector.calibration, card, pixel, cards), page)
    return {"report": str(page), **asdict(evaluation)}


def _aupro(value: float) -> Card:
    note = "How much of each defect's area is found, on average while at most 30 % of the good pixels are marked."
    return Card("AUPRO", f"{value:.3f}", note)


@app.command()
def evaluate(
    model: Annotated[Path, typer.Argument(help="A model file of `fcdd train` or `fcdd export`.")],
    test: Annotated[Path, typer.Argument(help="MVTec layout, or good/ and defects/ (and masks/).")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The page to write.")] = None,
    skip_bad: SkipBad = False,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing page.")] = False,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Measure a detector on labelled images and write a page that shows every one of them."""
    with reported():
        page = output or model.with_name(f"{model.stem}-evaluation.html")
        told = evaluate_model(model, test, page, overwrite, skip_bad, quiet=json_, threads=threads)
        tell(told, json_, *figure_lines(told), f"page      {told['report']}")
