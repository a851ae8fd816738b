"""`fcdd drift`: whether the line still looks as it did at calibration."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from fcdd import folders
from fcdd.cli.common import SOMETHING_WRONG, FitOption, Json, Threads, app, command, reported, share, tell
from fcdd.detector import load
from fcdd.detector.drift import drift as drift_of
from fcdd.errors import FcddError
from fcdd.framing import Fit


def drifted(model: Path, inputs: Path, level: float, threads: int = 0, fit: Fit | None = None) -> dict[str, Any]:
    """Whether the scores of new, presumably good images still look like those of the calibration."""
    detector = load(model, threads, fit)
    paths, _ = folders.usable(inputs, skip_bad=False)
    return asdict(drift_of(detector.calibration, detector.score_samples(paths).tolist(), level))


@app.command()
def drift(
    model: Annotated[Path, typer.Argument(help="A model file of `fcdd train` or `fcdd export`.")],
    inputs: Annotated[Path, typer.Argument(help="Folder of new images, most of them presumably good.")],
    level: Annotated[float, typer.Option(callback=share, help="Chance of a false alarm.")] = 0.01,
    fail_on: Annotated[str | None, typer.Option(help="drift: exit with 1 where there is some.")] = None,
    fit: FitOption = None,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Say whether new scores still look like those of the calibration, and what change would have shown."""
    with reported():
        if fail_on not in (None, "drift"):
            raise FcddError(f"--fail-on {fail_on}: must be drift")
        told = drifted(model, inputs, level, threads, fit)
        calibrate = command("calibrate", model, "NEW-GOOD-IMAGES")
        then = calibrate if told["drifted"] else "nothing to do; ask again when light, camera or parts have changed"
        tell(told, json_, told["sentence"], then=then)
    if fail_on and told["drifted"]:
        raise typer.Exit(SOMETHING_WRONG)
