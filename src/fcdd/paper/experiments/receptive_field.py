"""Appendix A: the receptive field's influence on AUC (CIFAR-10), pixel AUC (MVTec-AD) and heatmaps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fcdd.data import DATASETS
from fcdd.paper.experiments import EXPERIMENTS, Experiment
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.options import Options
from fcdd.paper.results import (
    PIXEL_METRICS,
    Results,
    by_column,
    compared_metric,
    facts,
    of_dataset,
    parameter_curve,
    parameter_sheet,
    parameter_table,
)
from fcdd.paper.tables import Table


class Study(NamedTuple):
    """The networks of one dataset, and the side of their receptive field in pixels by the kernel that gives it."""

    network: str
    fields: dict[int, int]
    pixels: bool  # whether the pixel AUC is looked at, or that of images


STUDIES = {
    "cifar10": Study("cifar-field", {kernel + 15: kernel for kernel in range(3, 18, 2)}, pixels=False),  # 18 … 32
    "mvtec": Study("mvtec-field", {19 * kernel - 4: kernel for kernel in range(3, 14, 2)}, pixels=True),  # 53 … 243
}


def plan(options: Options) -> list[Task]:
    """Every class of the chosen datasets by every field; these networks start at random."""
    datasets = options.chosen(list(STUDIES), "datasets")
    options.check_classes(datasets)
    tasks: list[Task] = []
    for dataset in datasets:
        for field, kernel in STUDIES[dataset].fields.items():
            changes = {"network": STUDIES[dataset].network, "kernel": kernel, "pretrained": False, "freeze": 0}
            tasks += options.tasks(dataset, options.classes_of(dataset), str(field), changes)
    return tasks


def tables(options: Options, results: Results, tasks: Sequence[Task]) -> list[Table]:
    """For each dataset the mean and every class by field."""
    return [
        _table(options, dataset, results, own)
        for dataset in STUDIES
        if (own := [task for task in tasks if task.job.recipe.dataset == dataset])
    ]


def _table(options: Options, dataset: str, results: Results, tasks: Sequence[Task]) -> Table:
    own, study = of_dataset(results, dataset), STUDIES[dataset]
    metric = compared_metric(options) if study.pixels else "image_auroc"
    return parameter_table(
        f"Receptive field on {DATASETS[dataset].title}: {_what(options, study)}",
        "field",
        tasks,
        by_column(own, metric),
        f"{dataset}-field",
        facts(options, own, tasks),
        [str(field) for field in study.fields],
    )


def _what(options: Options, study: Study) -> str:
    return f"pixel AUC, {PIXEL_METRICS[compared_metric(options)]}" if study.pixels else "AUC"


def figures(options: Options, ledger: Ledger, results: Results) -> list[Path]:
    """For each dataset the curve of the means, and the same images under each field (the paper's Figures 9 and 10)."""
    shown: list[Path] = []
    for dataset, study in STUDIES.items():
        own = of_dataset(results, dataset)
        if not own:
            continue
        name = f"receptive-field-{dataset}"
        table = _table(options, dataset, own, list(own))
        shown += parameter_curve(options.output / f"{name}.png", table, "receptive field in px", _what(options, study))
        headings = {str(field): f"{field} px" for field in study.fields}
        shown += parameter_sheet(options.output / f"{name}-heatmaps.png", ledger, own, headings)
    return shown


EXPERIMENTS.register("receptive-field")(
    Experiment("Receptive field: AUC on CIFAR-10, pixel AUC on MVTec-AD", plan, tables, figures)
)
