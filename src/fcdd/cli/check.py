"""`fcdd check`: look through a folder of images before training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fcdd.cli.common import SOMETHING_WRONG, Json, app, reported, tell


@app.command()
def check(
    root: Annotated[Path, typer.Argument(help="Folder of good images, or of good and defects, or an MVTec class.")],
    json_: Json = False,
) -> None:
    """Look through a folder of images before training: what is damaged, doubled, odd or missing, and what to do."""
    with reported():
        from fcdd.check import check as examine

        diagnosis = examine(root, quiet=json_)
        tell(diagnosis.to_dict(), json_, diagnosis.text())
    if not diagnosis.ok:
        raise typer.Exit(SOMETHING_WRONG)
