"""`fcdd run`: train and evaluate one model of a paper recipe."""

from __future__ import annotations

import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from fcdd.cli.common import Json, Seed, Threads, app, command, not_negative, reported, set_threads
from fcdd.outputs import RESULT, resumed_folder, working_folder
from fcdd.training.recipe import names

ENTRIES = (RESULT, "model.safetensors", "heatmaps.png", "checkpoint.safetensors")  # of a run's folder


@app.command()
def run(
    recipe: Annotated[str, typer.Argument(help=f"{', '.join(names())}, or a .toml file.")],
    normal: Annotated[str, typer.Option(help="The nominal class (for voc: the anomalous one).")],
    data: Annotated[Path, typer.Option(help="Folder that holds the datasets.", envvar="FCDD_DATA")] = Path("data"),
    oe: Annotated[
        str | None,
        typer.Option(
            help="Anomalies: confetti, folder:DIR, or a corpus such as cifar100; an unknown name lists all corpora."
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Instead of the recipe's.")] = None,
    seed: Seed = 0,
    weights: Annotated[str | None, typer.Option(help="File of ImageNet weights, or none for a random start.")] = None,
    network: Annotated[str | None, typer.Option(help="Instead of the recipe's, such as vgg16.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Override any recipe value: NAME=VALUE.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder of the result.")] = None,
    authors_protocol: Annotated[bool, typer.Option(help="Keep training anomalies in the test set.")] = False,
    overwrite: Annotated[bool, typer.Option(help="Start anew where a result or checkpoint exists.")] = False,
    checkpoint_seconds: Annotated[
        float, typer.Option(callback=not_negative, help="Seconds between two checkpoints.")
    ] = 30.0,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Train and evaluate one model of a paper recipe. A stopped run goes on where it was."""
    again = " ".join(word for word in sys.argv[1:] if word != "--overwrite")
    with reported(f"Resume with: fcdd {again}"):
        from fcdd.paper.run import Job
        from fcdd.paper.run import run as run_job
        from fcdd.training import recipe as recipes

        set_threads(threads)
        named = {"exposure": oe, "network": network}
        overrides = {k: v for k, v in named.items() if v is not None}
        overrides |= dict(recipes.parse_override(text) for text in set_ or [])
        chosen = recipes.load(recipe, overrides)
        file = None if weights in (None, "none") else Path(str(weights))
        job = Job(
            recipe=chosen if epochs is None else chosen.shortened(epochs),
            normal=normal,
            data=data,
            seed=seed,
            weights=file,
            random_start=weights == "none",
            authors_protocol=authors_protocol,
        )
        folder = output or Path("runs") / f"{Path(recipe).stem}-{normal}-seed{seed}"
        identity = json.dumps(job.identity, sort_keys=True)
        first = os.environ.get("RANK", "0") == "0"  # of several processes, one looks after the folder
        opened = (
            resumed_folder(folder, ENTRIES, identity, inputs=[data, file], overwrite=overwrite)
            if first
            else nullcontext(working_folder(folder, identity, overwrite))
        )
        with opened as work:
            result = run_job(job, work, folder, quiet=json_, checkpoint_seconds=checkpoint_seconds)
        _print_result(result, json_)


def _print_result(result: dict[str, Any], as_json: bool) -> None:
    if os.environ.get("RANK", "0") != "0":  # of several processes the first one speaks
        return
    if as_json:
        typer.echo(json.dumps(result))
        return
    typer.echo(f"{result['name']}  ({result['data']}; anomalies: {result['exposure']})")
    typer.echo(f"  start weights       {result['job']['weights']}")
    typer.echo(f"  image AUROC         {result['image_auroc']:.4f}")
    if result["pixel_auroc"] is not None:
        typer.echo(f"  pixel AUROC pooled  {result['pixel_auroc']:.4f}")
        typer.echo(f"  pixel AUROC mean    {result['pixel_auroc_mean']:.4f}")
    if result["images_per_second"]:
        typer.echo(f"  training            {result['images_per_second']:.1f} images/s, data {result['data_share']:.1%}")
    typer.echo(f"  heatmaps            {result['files']['heatmaps']}")
    typer.echo(f"  model               {result['files']['model']}")
    typer.echo(f"next      use it like any other: {command('predict', result['files']['model'], 'IMAGES')}")
