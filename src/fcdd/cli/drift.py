"""`fcdd drift`: whether the line still looks as it did at calibration."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from fcdd import folders
from fcdd.cli.common import Json, Threads, app, reported, share, tell
from fcdd.detector import calibration, load


def drifted(model: Path, inputs: Path, level: float, threads: int = 0) -> dict[str, Any]:
    """Whether the scores of new, presumably good images still look like those of the calibration."""
    detector = load(model, threads)
    paths, _ = folders.usable(inputs, skip_bad=False)
    return asdict(calibration.drift(detector.calibration.scores, detector.score_samples(paths).tolist(), level))


@app.command()
def drift(
    model: Annotated[Path, typer.Argument(help="A model file of `fcdd train` or `fcdd export`.")],
    inputs: Annotated[Path, typer.Argument(help="Folder of new images, most of them presumably good.")],
    level: Annotated[float, typer.Option(callback=share, help="Chance of a false alarm.")] = 0.01,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Say whether new scores still look like those of the calibration."""
    with reported():
        told = drifted(model, inputs, level, threads)
        tell(told, json_, told["sentence"])
