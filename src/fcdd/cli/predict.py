"""`fcdd predict`: judge images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fcdd.cli.common import SOMETHING_WRONG, Json, Threads, app, place_of, refuse_unused, reported, tell
from fcdd.errors import FcddError


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="A model file of `fcdd train` or `fcdd export`.")],
    inputs: Annotated[Path, typer.Argument(help="An image, a folder of images, or with --on a manifest.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for scores and overlays.")] = Path("results"),
    fail_on: Annotated[str | None, typer.Option(help="ng or review: exit with 1 where there is one.")] = None,
    skip_bad: Annotated[
        bool, typer.Option(help="Leave out files that cannot be read; with --on ray this is always so.")
    ] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing folder that fcdd made.")] = False,
    on: Annotated[str, typer.Option(help="local, ray, or ray:ADDRESS of a cluster, for large collections.")] = "local",
    format_: Annotated[
        str | None, typer.Option("--format", help="With --on ray: parquet, which is the default, or jsonl.")
    ] = None,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Judge images: index.html, scores.csv, results.jsonl, overlays; with --on ray, partitions of scores alone."""
    with reported():
        if fail_on not in (None, "ng", "review"):
            raise FcddError(f"--fail-on {fail_on}: must be ng or review")
        on_ray, address = place_of(on)
        if on_ray:
            from fcdd.batch import on_ray as cluster

            told = cluster.predict(model, inputs, output, address, format_ or "parquet", overwrite, threads, json_)
        else:
            from fcdd.batch import local

            refuse_unused("only with --on ray; else the results are scores.csv and results.jsonl", format=format_)
            told = local.predict(model, inputs, output, overwrite, skip_bad, quiet=json_, threads=threads)
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
