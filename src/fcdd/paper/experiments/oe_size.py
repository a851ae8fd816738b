"""The number of auxiliary anomalies (the paper's Figures 6 and 14): AUC and heatmaps of FCDD, gradients, autoencoder.

By default of CIFAR-10's airplanes, as in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fcdd.paper.experiments import EXPERIMENTS, Experiment
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.options import Options
from fcdd.paper.results import Results, by_column, facts, parameter_sheet, parameter_table
from fcdd.paper.tables import Table

SIZES = ("2", "8", "128", "2048", "all")
BLOCKS = {"fcdd": "FCDD", "hsc": "gradient"}  # that learn from auxiliary anomalies; the autoencoder does not
AUTOENCODER = "ae"


def plan(options: Options) -> list[Task]:
    """One dataset, and the first class where the user named none: the paper's figure is of airplanes."""
    dataset = options.chosen(["cifar10", "fmnist"], "datasets")[0]
    options.check_classes([dataset])
    classes = options.classes_of(dataset) if options.classes else options.classes_of(dataset)[:1]
    methods = options.chosen([*BLOCKS, AUTOENCODER], "methods")
    tasks = [
        task
        for method in methods
        if method in BLOCKS
        for size in SIZES
        for task in options.tasks(dataset, classes, _column(method, size), _changes(method, size))
    ]
    return tasks + (options.tasks(dataset, classes, AUTOENCODER, {"method": "ae"}) if AUTOENCODER in methods else [])


def _column(method: str, size: str) -> str:
    return f"{method} {size}"


def _changes(method: str, size: str) -> dict[str, object]:
    limit: dict[str, object] = {"exposure_limit": 0 if size == "all" else int(size)}
    return limit if method == "fcdd" else {"method": method, **limit}


def tables(options: Options, results: Results, tasks: Sequence[Task]) -> list[Table]:
    """AUC by number of samples, for each method; the autoencoder's, which sees none of them, in a note."""
    shown = []
    for method, title in (*BLOCKS.items(), (AUTOENCODER, "autoencoder")):
        own = [task for task in tasks if task.job.recipe.method == method]
        if not own:
            continue
        rows = [_column(method, size) for size in SIZES] if method in BLOCKS else [AUTOENCODER]
        done = {task: result for task, result in results.items() if task in own}
        notes = facts(options, done, own)
        named = f"Number of Outlier Exposure samples: AUC of {'HSC' if method == 'hsc' else title}"
        shown.append(parameter_table(named, "samples", own, by_column(done, "image_auroc"), "oe-size", notes, rows))
    return shown


def figures(options: Options, ledger: Ledger, results: Results) -> list[Path]:
    """Three anomalous images, one a row: FCDD and gradients by number of samples, autoencoder; blurred, and not."""
    headings = {_column(method, size): f"{title} {size}" for method, title in BLOCKS.items() for size in SIZES}
    headings[AUTOENCODER] = "AE"
    return [
        path
        for blur, name in ((True, "blurred"), (False, "raw"))
        for path in parameter_sheet(options.output / f"oe-size-heatmaps-{name}.png", ledger, results, headings, blur)
    ]


EXPERIMENTS.register("oe-size")(Experiment("Number of Outlier Exposure samples", plan, tables, figures))
