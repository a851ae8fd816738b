"""`fcdd check`: look through a folder of images before training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fcdd.cli.common import SOMETHING_WRONG, Json, Threads, app, command, refuse_unused, reported, tell
from fcdd.detector import load
from fcdd.folders import layout


@app.command()
def check(
    root: Annotated[Path, typer.Argument(help="Folder of good images, or of good and defects, or an MVTec class.")],
    against: Annotated[
        Path | None, typer.Option(help="A model, which names the good images that score as defects do.")
    ] = None,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Look through a folder of images before training: what is damaged, doubled, odd or missing, and what to do."""
    with reported():
        from fcdd.check import check as examine

        if against is None:
            refuse_unused("only with --against", threads=threads or None)
        diagnosis = examine(root, against=None if against is None else load(against, threads), quiet=json_)
        good = layout(root).train if root.is_dir() else root
        ready = command("train", good, "-o", "part.safetensors")
        tell(
            diagnosis.to_dict(),
            json_,
            diagnosis.text(),
            then=ready if diagnosis.ok else "mend the errors, then check again",
        )
    if not diagnosis.ok:
        raise typer.Exit(SOMETHING_WRONG)
