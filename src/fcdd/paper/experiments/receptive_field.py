"""Appendix A: the receptive field's influence on AUC (CIFAR-10), pixel AUC (MVTec-AD) and heatmaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fcdd.data import DATASETS
from fcdd.paper.experiments import EXPERIMENTS, Experiment, Report
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.options import Options
from fcdd.paper.results import (
    PIXEL_METRICS,
    by_column,
    compared_metric,
    facts,
    gather,
    parameter_curve,
    parameter_sheet,
    parameter_table,
)


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


def report(options: Options, ledger: Ledger, tasks: Sequence[Task]) -> Report:
    """For each dataset its table, the curve of the means, and the same images under each field."""
    tables, shown = [], []
    for dataset, study in STUDIES.items():
        own = [task for task in tasks if task.job.recipe.dataset == dataset]
        if not own:
            continue
        results = gather(ledger, own)
        metric = compared_metric(options) if study.pixels else "image_auroc"
        what = f"pixel AUC, {PIXEL_METRICS[metric]}" if study.pixels else "AUC"
        table = parameter_table(
            f"Receptive field on {DATASETS[dataset].title}: {what}",
            "field",
            own,
            by_column(results, metric),
            f"{dataset}-field",
            facts(options, results, own),
            [str(field) for field in study.fields],
        )
        tables.append(table)
        name = f"receptive-field-{dataset}"
        shown += parameter_curve(options.output / f"{name}.png", table, "receptive field in px", what)
        shown += parameter_sheet(options.output / f"{name}-heatmaps.png", ledger, results)
    return Report(tables, shown)


EXPERIMENTS.register("receptive-field")(
    Experiment("Receptive field: AUC on CIFAR-10, pixel AUC on MVTec-AD", plan, report)
)
