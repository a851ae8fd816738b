"""`fcdd demo`: an inspection set made in code, a detector trained on it, its figures and its heatmaps."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from fcdd import images
from fcdd.cli.common import Json, Seed, Threads, app, command, figure_lines, reported, set_threads, tell
from fcdd.cli.evaluate import evaluate_model
from fcdd.cli.train import TrainOptions, train_model
from fcdd.files import write_atomically
from fcdd.outputs import whole_folder
from fcdd.report import contact_sheet
from fcdd.report.colours import colour, overlay
from fcdd.report.inspection import heat

if TYPE_CHECKING:
    from fcdd.detector.judge import Judge

SHOWN_SEVERITY = 6  # of ten, from faint to severe: what the sheet shows of each defect


def run_demo(output: Path, seed: int = 0, overwrite: bool = False, quiet: bool = False) -> dict[str, Any]:
    """Write plates, model, report and heatmaps into `output`; the figures as plain values."""
    from fcdd.anomalies.plates import write
    from fcdd.detector import load

    plates, model, page, sheet = "plates", "plate.safetensors", "evaluation.html", "heatmaps.png"
    with whole_folder(output, overwrite=overwrite) as draft:
        good = write(draft / plates, seed) / "train" / "good"
        trained = train_model(good, None, None, draft / model, TrainOptions(seed=seed), quiet=quiet)
        figures = evaluate_model(
            draft / model, draft / plates, draft / page, overwrite=False, skip_bad=False, quiet=quiet
        )
        _sheet(load(draft / model), draft / plates, draft / sheet)
        for path in draft.glob("*.html"):  # they name images by where those will be
            write_atomically(path, path.read_bytes().replace(os.fsencode(draft), os.fsencode(output)))
    training = {**trained, "model": str(output / model), "report": str((output / model).with_suffix(".html"))}
    places = {"report": str(output / page), "picture": str(output / sheet), "plates": str(output / plates)}
    return {**figures, "training": training, **places}


def _sheet(detector: Judge, plates: Path, path: Path) -> None:
    """One good plate and one of each defect: input, heatmap, overlay, truth."""
    from fcdd.anomalies.plates import DEFECTS

    name = f"{SHOWN_SEVERITY:03}"
    rows: list[list[np.ndarray]] = [[], [], [], []]
    headings = []
    for kind in ("good", *DEFECTS):
        array, result = next(detector.inspect([plates / "test" / kind / f"{name}.png"]))
        values = heat(detector, result)
        mask = plates / "ground_truth" / kind / f"{name}_mask.png"
        truth = images.load_mask(mask) if mask.exists() else np.zeros(array.shape[:2], np.bool_)
        for row, image in zip(rows, (array, colour(values), overlay(array, values), truth), strict=True):
            row.append(image)
        headings.append(f"{kind}: {result.verdict}, p {result.p_value:.2g}")
    contact_sheet(rows, headings, ["input", "heatmap", "overlay", "truth"], path)


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for everything it makes.")] = Path("fcdd-demo"),
    seed: Seed = 0,
    overwrite: Annotated[bool, typer.Option(help="Replace the folder of an earlier demo.")] = False,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Make an inspection set of metal plates, train on its good ones, and show what the detector finds."""
    with reported():
        set_threads(threads)
        figures = run_demo(output, seed, overwrite, quiet=json_)
        tell(
            figures,
            json_,
            f"trained on {figures['training']['good']} good plates in {figures['training']['seconds']:.0f} s",
            *figure_lines(figures),
            f"plates    {figures['plates']}   (try the other commands on them)",
            f"page      {figures['report']}",
            f"image     {figures['picture']}",
            then=f"open {figures['report']} in a browser; then your own parts: {command('check', 'GOOD-IMAGES')}",
        )
