"""Commands that bring a trained detector to the line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fcdd.cli.common import Json, Threads, app, reported, set_threads, tell
from fcdd.errors import DataError


@app.command()
def export(
    model: Annotated[Path, typer.Argument(help="A model file of `fcdd train`.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The .onnx file to write.")] = None,
    images: Annotated[Path | None, typer.Option(help="Good images to compare on, best those trained on.")] = None,
    precision: Annotated[str, typer.Option(help="fp32; fp16 or int8 need --images.")] = "fp32",
    overwrite: Annotated[bool, typer.Option(help="Replace an existing file.")] = False,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Write a detector as one ONNX file that needs no torch, after checking that it answers the same."""
    with reported():
        target = output or model.with_suffix(".onnx")
        if target.suffix != ".onnx":
            raise DataError(f"{target}: name it .onnx, by which the other commands know it")
        from fcdd import commands

        commands.refuse_existing([target], overwrite)
        set_threads(threads)
        told = commands.export(model, target, images, precision, quiet=json_)
        tell(told, json_, told["sentence"], f"model     {told['model']}   ({told['megabytes']:.1f} MB)")
