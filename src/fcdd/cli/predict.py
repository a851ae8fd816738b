"""`fcdd predict`: judge images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fcdd.cli.common import SOMETHING_WRONG, Json, SkipBad, Threads, app, reported, tell
from fcdd.errors import FcddError


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="A model file of `fcdd train` or `fcdd export`.")],
    inputs: Annotated[Path, typer.Argument(help="An image, a folder of images, or with --on a manifest.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for scores and overlays.")] = Path("results"),
    fail_on: Annotated[str | None, typer.Option(help="ng or review: exit with 1 where there is one.")] = None,
    skip_bad: SkipBad = False,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing folder.")] = False,
    on: Annotated[str, typer.Option(help="local, ray, or ray:ADDRESS of a cluster, for large collections.")] = "local",
    format_: Annotated[str, typer.Option("--format", help="With --on ray: parquet or jsonl.")] = "parquet",
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Judge images: index.html, scores.csv, results.jsonl, overlays; with --on ray, partitions of scores alone."""
    with reported():
        if fail_on not in (None, "ng", "review"):
            raise FcddError(f"--fail-on {fail_on}: must be ng or review")
        where, _, address = on.partition(":")
        if where == "ray":
            from fcdd.batch import on_ray

            told = on_ray.predict(model, inputs, output, address, format_, overwrite, threads, quiet=json_)
        elif where == "local":
            from fcdd.batch import local

            told = local.predict(model, inputs, output, overwrite, skip_bad, quiet=json_, threads=threads)
        else:
            raise FcddError(f"--on {on}: choose local, ray or ray:ADDRESS")
        counts = told["verdicts"]
        tell(
            told,
            json_,
            ", ".join(f"{counts.get(v, 0)} {v}" for v in ("OK", "REVIEW", "NG"))
            + f"   ({told['images_per_second']:.1f} images/s)",
            *(
                f"  {row['verdict']:6} score {row['score']:.3f}  p {row['p_value']:.3f}  {row['file']}"
                for row in told["worst"]
            ),
            *(f"skipped {line}" for line in told["skipped"]),
            f"results   {told['output']}",
        )
    wanted = {"ng": ["NG"], "review": ["NG", "REVIEW"]}.get(fail_on or "", [])
    if any(counts.get(verdict) for verdict in wanted):
        raise typer.Exit(SOMETHING_WRONG)
