"""`fcdd reproduce`: the paper's experiments as grids of jobs, beside the published figures."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from fcdd.cli.common import SOMETHING_WRONG, Json, app, not_negative, place_of, refuse_unused, reported, tell

if TYPE_CHECKING:
    from fcdd.paper.grid import Status
    from fcdd.paper.tables import Table

ALL = "all"  # in the place of an experiment: every one of them, into one folder


class ListsExperiments(TyperCommand):
    """A command whose help ends with the experiments there are; they are read only when somebody asks for the help."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help of the command, with a line for each registered experiment."""
        from fcdd.paper.experiments import EXPERIMENTS

        lines = [f"{name}: {experiment.title}." for name, experiment in EXPERIMENTS.items()]
        self.epilog = "\n\n".join([self.epilog or "", "Experiments:", *lines])
        super().format_help(ctx, formatter)


@app.command(cls=ListsExperiments)
def reproduce(
    experiment: Annotated[str, typer.Argument(help="Which one, or all; they are listed below.")],
    data: Annotated[Path, typer.Option(help="Folder that holds the datasets.", envvar="FCDD_DATA")] = Path("data"),
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of results, tables and figures.")] = Path(
        "results"
    ),
    budget: Annotated[str, typer.Option(help="smoke, short or paper: epochs, seeds and classes.")] = "short",
    epochs: Annotated[int, typer.Option(min=0, help="Instead of the budget's; 0 keeps it.")] = 0,
    seeds: Annotated[int, typer.Option(min=0, help="Number of seeds, instead of the budget's; 0 keeps it.")] = 0,
    classes: Annotated[str, typer.Option(help="Comma-separated, instead of all.")] = "",
    datasets: Annotated[str, typer.Option(help="Comma-separated, where the experiment has several.")] = "",
    methods: Annotated[str, typer.Option(help="Comma-separated columns to run, where there are several.")] = "",
    weights: Annotated[str | None, typer.Option(help="File of ImageNet weights, or none for a random start.")] = None,
    network: Annotated[str, typer.Option(help="Where the paper has VGG11-BN, such as vgg16.")] = "",
    oe: Annotated[str, typer.Option(help="Corpus of Outlier Exposure, where the recipe has one.")] = "",
    set_: Annotated[list[str] | None, typer.Option("--set", help="Override any recipe value: NAME=VALUE.")] = None,
    protocol: Annotated[str, typer.Option(help="paper, or authors for what their code does instead.")] = "paper",
    workers: Annotated[int, typer.Option(min=0, help="Processes at a time; 0 for one a core.")] = 0,
    on: Annotated[str, typer.Option(help="local, ray, or ray:ADDRESS of a cluster.")] = "local",
    cpus: Annotated[
        float | None, typer.Option(callback=not_negative, help="With --on ray: CPUs a job asks for, else one.")
    ] = None,
    gpus: Annotated[
        float | None, typer.Option(callback=not_negative, help="With --on ray: GPUs a job asks for, else none.")
    ] = None,
    checkpoint_seconds: Annotated[
        float, typer.Option(callback=not_negative, help="Seconds between two checkpoints.")
    ] = 30.0,
    retry_failed: Annotated[bool, typer.Option(help="Run failed jobs again.")] = False,
    status: Annotated[
        bool,
        typer.Option(
            "--status", help="Only show how far the last run into the output folder is; needs no other option."
        ),
    ] = False,
    keep: Annotated[
        Path | None, typer.Option(help="Folder for a small file a finished job, which tables can be made from again.")
    ] = None,
    json_: Json = False,
) -> None:
    """Run an experiment of the paper, or `all`, and write its tables and figures beside the published ones.

    What is done is not run again; a stopped or killed job goes on from its checkpoint with the next call.
    """
    with reported(f"Go on with the same command: fcdd {' '.join(sys.argv[1:])}"):
        from fcdd.paper import grid, kept
        from fcdd.paper.experiments import EXPERIMENTS, publish
        from fcdd.paper.options import Options
        from fcdd.training import recipe as recipes

        names = list(EXPERIMENTS) if experiment == ALL else [experiment]
        if experiment == ALL:
            named = {"classes": classes, "datasets": datasets, "methods": methods, "keep": keep}
            refuse_unused(
                "not with all, where experiments differ in it", **{name: one or None for name, one in named.items()}
            )
        planned = {name: EXPERIMENTS[name] for name in names}
        on_ray, address = place_of(on)
        if on_ray:
            refuse_unused("not with --on ray, where --cpus says how many run at a time", workers=workers or None)
        else:
            refuse_unused("only with --on ray", cpus=cpus, gpus=gpus)
        if status:
            refuse_unused("not with --status, which only looks", retry_failed=retry_failed)
        options = Options(
            data=data,
            output=output,
            weights=None if weights in (None, "none") else Path(str(weights)),
            random_start=weights == "none",
            budget=budget,
            epochs=epochs,
            seeds=seeds,
            classes=_listed(classes),
            datasets=_listed(datasets),
            methods=_listed(methods),
            protocol=protocol,  # type: ignore[arg-type]  # checked there
            trunk=network,
            corpus=oe,
            overrides=dict(recipes.parse_override(text) for text in set_ or []),
        )
        ledger = grid.Ledger(output)
        plans = {}
        for name in names:
            chosen = (Options.remembered(output, name) if status else None) or options
            plans[name] = (chosen, planned[name].plan(chosen))
        tasks = list(dict.fromkeys(task for _, own in plans.values() for task in own))
        if status:
            _tell_status(grid.status(ledger, tasks, workers), json_)
            return
        for name in names:
            options.remember(name)
        if retry_failed:
            ledger.forgive(tasks)
        if on_ray:
            from fcdd.paper.cluster import run_on_ray

            asked = (1.0 if cpus is None else cpus, gpus or 0.0)
            run_on_ray(ledger, tasks, address, *asked, json_, checkpoint_seconds)
        else:
            from fcdd.paper.workers import run_locally

            run_locally(ledger, tasks, workers, json_, checkpoint_seconds)
        made = [publish(name, options, ledger, own) for name, (_, own) in plans.items()]
        tables = [table for report, _ in made for table in report.tables]
        files = [path for _, written in made for path in written]
        if keep is not None:
            files += kept.keep(keep, experiment, options, ledger, tasks)
        reached = grid.status(ledger, tasks, workers)
        _tell_report(tables, files, reached, json_)
        if reached.failed:
            raise typer.Exit(SOMETHING_WRONG)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _tell_status(status: Status, as_json: bool) -> None:
    left = "unknown" if status.seconds_left is None else f"about {_duration(status.seconds_left)}"
    lines = [f"done {status.done}  failed {status.failed}  running {status.running}  left {status.left}"]
    lines += [f"time left {left}"] if status.left or status.running else []
    waiting = status.left or status.running or status.failed
    then = "go on with the same command without --status" if waiting else "the tables are in the output folder"
    tell(asdict(status), as_json, *lines, *_failures(status), then=then)


def _tell_report(tables: list[Table], files: list[Path], status: Status, as_json: bool) -> None:
    from fcdd.paper.tables import markdown

    cells = [
        {"table": table.title, "row": row, "column": column, "text": cell.text(), "mean": cell.mean}
        for table in tables
        for row, held in table.rows.items()
        for column, cell in zip(table.columns, held, strict=True)
    ]
    values = {"status": asdict(status), "cells": cells, "files": [str(path) for path in files]}
    summary = f"done {status.done}  failed {status.failed}  running {status.running}  left {status.left}"
    then = "run the failed jobs again with --retry-failed" if status.failed else f"open {files[0]}"
    written = [f"  {path}" for path in files]
    tell(values, as_json, markdown(tables), summary, *_failures(status), *written, then=then)


def _failures(status: Status) -> list[str]:
    """Failed jobs, those with the same error together."""
    by_error: dict[str, list[str]] = {}
    for failure in status.failures:
        by_error.setdefault(failure["error"], []).append(failure["task"])
    more = {error: f" and {len(names) - 1} more" if names[1:] else "" for error, names in by_error.items()}
    return [f"failed: {names[0]}{more[error]}: {error}" for error, names in by_error.items()]


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
