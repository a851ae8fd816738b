"""`fcdd export`: a detector as one ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fcdd import folders
from fcdd.cli.common import Json, Threads, app, command, reported, set_threads, suffixed, tell
from fcdd.errors import DataError
from fcdd.outputs import claimed


def export_model(model: Path, output: Path, good: Path | None, precision: str, quiet: bool) -> dict[str, Any]:
    """Write a saved detector as one ONNX file, checked against it on the images of `good`."""
    from fcdd.detector.detector import Detector
    from fcdd.detector.export import PRECISIONS, export

    chosen = next((known for known in PRECISIONS if known == precision), None)
    if chosen is None:
        raise DataError(f"--precision {precision}: must be {', '.join(PRECISIONS)}")
    paths = None if good is None else folders.usable(good, skip_bad=False)[0]
    runtime, measured = export(Detector.load(model), output, paths, chosen, quiet=quiet)
    return {
        "model": str(output),
        "precision": precision,
        "parity": runtime.parity,
        "megabytes": output.stat().st_size / 1e6,
        "sentence": str(measured),
    }


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
        suffixed(target, ".onnx")
        with claimed([target], inputs=[model, images], overwrite=overwrite):
            set_threads(threads)
            told = export_model(model, target, images, precision, quiet=json_)
        tell(
            told,
            json_,
            told["sentence"],
            f"model     {told['model']}   ({told['megabytes']:.1f} MB)",
            then=f"on the line: {command('serve', target)}, or {command('watch', target, 'FOLDER')}",
        )
