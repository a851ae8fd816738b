"""`fcdd predict`: judge images."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from fcdd.cli.common import (
    SOMETHING_WRONG,
    FitOption,
    Json,
    Threads,
    app,
    place_of,
    refuse_unused,
    reported,
    tell,
    warned,
)
from fcdd.errors import FcddError

FAIL_ON = {"ng": ("NG",), "review": ("NG", "REVIEW")}  # the verdicts that each value of --fail-on asks for


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="A model file of `fcdd train` or `fcdd export`.")],
    inputs: Annotated[Path, typer.Argument(help="An image, a folder of images, or with --on a manifest.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for scores and overlays.")] = Path("results"),
    fail_on: Annotated[str | None, typer.Option(help="ng or review: exit with 1 where there is one.")] = None,
    fit: FitOption = None,
    skip_bad: Annotated[
        bool, typer.Option(help="Leave out files that cannot be read; with --on ray this is always so.")
    ] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing folder that fcdd made.")] = False,
    pdf: Annotated[bool, typer.Option("--pdf", help="Also write report.pdf, a report to be signed off.")] = False,
    on: Annotated[str, typer.Option(help="local, ray, or ray:ADDRESS of a cluster, for large collections.")] = "local",
    format_: Annotated[
        str | None, typer.Option("--format", help="With --on ray: parquet, which is the default, or jsonl.")
    ] = None,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Judge images: a page, scores.csv, results.jsonl and overlays; with --on ray, partitions of scores alone."""
    with reported():
        from fcdd.report.drawing import words

        refuse_unknown(fail_on)
        on_ray, address = place_of(on)
        if on_ray:
            refuse_unused("not with --on ray, which writes scores alone", pdf=pdf)
            from fcdd.batch import on_ray as cluster

            refuse_unused("not with --on ray; give it to fcdd calibrate, and the model knows it", fit=fit)
            told = cluster.predict(model, inputs, output, address, format_ or "parquet", overwrite, threads, json_)
        else:
            from fcdd.batch import local

            refuse_unused("only with --on ray; else the results are scores.csv and results.jsonl", format=format_)
            told = local.predict(
                model, inputs, output, overwrite, skip_bad, quiet=json_, threads=threads, pdf=pdf, fit=fit
            )
        counts = told["verdicts"]
        tell(
            told,
            json_,
            ", ".join(f"{counts.get(v, 0)} {v}" for v in ("OK", "REVIEW", "NG"))
            + f"   ({told['images_per_second']:.1f} images/s)",
            *(
                f"  {row['verdict']:6} {words(row['score'], told['reject_above'])}  {row['file']}"
                if "reject_above" in told
                else f"  {row['verdict']:6} score {row['score']:.3f}  {row['file']}"  # of many machines
                for row in told["worst"]
            ),
            *(f"skipped {line}" for line in told["skipped"]),
            *warned(told),
            f"results   {told['output']}",
            *([f"report    {told['pdf']}   (to be signed off)"] if pdf else []),
            then=f"open {told['page']} in a browser" if not on_ray else "read the partitions, as docs/scale.md shows",
        )
    exit_on(fail_on, counts)


def refuse_unknown(fail_on: str | None) -> None:
    """FcddError where --fail-on names no verdict."""
    if fail_on is not None and fail_on not in FAIL_ON:
        raise FcddError(f"--fail-on {fail_on}: must be ng or review")


def exit_on(fail_on: str | None, counts: Mapping[str, int]) -> None:
    """End with code 1 where the verdicts that --fail-on asks for are among `counts`."""
    if fail_on is not None and any(counts.get(verdict) for verdict in FAIL_ON[fail_on]):
        raise typer.Exit(SOMETHING_WRONG)
