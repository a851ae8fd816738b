"""The appendix's studies of one parameter: receptive field, σ of the upsampling, number of auxiliary anomalies."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from fcdd.paper import figures, published
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.model import PaperModel
from fcdd.paper.probes import SIGMAS
from fcdd.paper.reproduce.notes import Results, facts, gather
from fcdd.paper.reproduce.options import Options
from fcdd.paper.reproduce.report import Report
from fcdd.paper.run import open_split
from fcdd.paper.tables import Cell, Table, mean_cell

CIFAR_FIELDS = {kernel + 15: kernel for kernel in range(3, 18, 2)}  # 18 … 32
MVTEC_FIELDS = {19 * kernel - 4: kernel for kernel in range(3, 14, 2)}  # 53 … 243
SIZES = ("2", "8", "128", "2048", "all")
SHOWN = 8  # pictures a row of a sheet
Measure = Callable[[str, str], dict[int, float]]  # parameter's value and class → seed → figure


def field_plan(options: Options) -> list[Task]:
    datasets = options.chosen(["cifar10", "mvtec"], "datasets")
    options.check_classes(datasets)
    tasks: list[Task] = []
    for dataset in datasets:
        network, fields = ("cifar-field", CIFAR_FIELDS) if dataset == "cifar10" else ("mvtec-field", MVTEC_FIELDS)
        for field, kernel in fields.items():
            changes = {"network": network, "kernel": kernel, "pretrained": False, "freeze": 0}
            tasks += options.tasks(dataset, options.classes_of(dataset), str(field), changes)
    return tasks


def field_report(options: Options, ledger: Ledger, tasks: Sequence[Task]) -> Report:
    tables, shown = [], []
    for dataset, metric, what in (("cifar10", "image_auroc", "AUC"), ("mvtec", "pixel_auroc", "pixel AUC")):
        own = [task for task in tasks if task.job.recipe.dataset == dataset]
        if not own:
            continue
        results = gather(ledger, own)
        title = f"Receptive field on {'CIFAR-10' if dataset == 'cifar10' else 'MVTec-AD'}: {what}"
        table = _table(
            title, "field", own, _by_column(results, metric), f"{dataset}-field", facts(options, results, own)
        )
        path = options.output / f"receptive-field-{dataset}.png"
        tables.append(table)
        shown += _curve(path, table, f"{dataset}-field", "receptive field in px", what)
        shown += _sheet(options.output / f"receptive-field-{dataset}-heatmaps.png", ledger, results)
    return Report(tables, shown)


def sigma_plan(options: Options) -> list[Task]:
    options.check_classes(["mvtec"])
    changes = {"objective": "authors"} if options.authors else {}
    return options.tasks("mvtec", options.classes_of("mvtec"), "fcdd", changes, probe="sigma")


def sigma_report(options: Options, ledger: Ledger, tasks: Sequence[Task]) -> Report:
    """Each σ evaluates the same saved models."""
    results = gather(ledger, tasks)

    def measure(row: str, normal: str) -> dict[int, float]:
        return {task.job.seed: r["sigma"][row] for task, r in results.items() if task.job.normal == normal}

    title = "σ of the upsampling: pixel AUC on MVTec-AD, one trained model per class and seed"
    notes = facts(options, results, tasks)
    table = _table(title, "σ", tasks, measure, "sigma", notes, rows=[str(width) for width in SIGMAS])
    return Report([table], _curve(options.output / "sigma.png", table, "sigma", "σ in px", "pixel AUC"))


def size_plan(options: Options) -> list[Task]:
    (dataset,) = options.chosen(["cifar10", "fmnist"], "datasets")[:1]
    options.check_classes([dataset])
    # The paper's figure is of airplanes.
    classes = options.classes_of(dataset) if options.classes else options.classes_of(dataset)[:1]
    return [
        task
        for size in SIZES
        for task in options.tasks(dataset, classes, size, {"exposure_limit": 0 if size == "all" else int(size)})
    ]


def size_report(options: Options, ledger: Ledger, tasks: Sequence[Task]) -> Report:
    results = gather(ledger, tasks)
    title = "Number of Outlier Exposure samples: AUC"
    notes = facts(options, results, tasks)
    table = _table(title, "samples", tasks, _by_column(results, "image_auroc"), "oe-size", notes)
    return Report([table], _sheet(options.output / "oe-size-heatmaps.png", ledger, results))


def _by_column(results: Results, metric: str) -> Measure:
    def measure(row: str, normal: str) -> dict[int, float]:
        return {
            task.job.seed: result[metric]
            for task, result in results.items()
            if task.column == row and task.job.normal == normal
        }

    return measure


def _table(
    title: str,
    corner: str,
    tasks: Sequence[Task],
    measure: Measure,
    paper: str,
    notes: list[str],
    rows: Sequence[str] = (),
) -> Table:
    """A row a value of the parameter: the mean over classes, beside the paper's, and each class."""
    classes = list(dict.fromkeys(task.job.normal for task in tasks))
    everything = len(published.rows(tasks[0].job.recipe.dataset))
    cells: dict[str, list[Cell]] = {}
    for row in rows or list(dict.fromkeys(task.column for task in tasks)):
        each = [Cell(measure(row, normal)) for normal in classes]
        mean = mean_cell(each, published.figure(paper, "fcdd", row))
        # A part of the classes is no match for the paper's mean over all: show it, but raise no flag.
        cells[row] = [mean if len(classes) == everything else replace(mean, limit=math.inf), *each]
    known = published.rows(paper)
    told = [f"The published mean is over all classes of the dataset, the measured one over {len(classes)}."]
    return Table(title, corner, ["mean", *classes], cells, [*notes, *(told if known else [])])


def _curve(path: Path, table: Table, paper: str, x_name: str, y_name: str) -> list[Path]:
    measured = [(float(row), cells[0].mean) for row, cells in table.rows.items() if cells[0].mean is not None]
    if not measured:
        return []
    figure_of = {row: published.figure(paper, "fcdd", row) for row in published.rows(paper)}
    known = [(float(row), figure.value) for row, figure in figure_of.items() if figure]
    figures.curves(path, {"measured": measured, "published": known}, x_name, f"{y_name}, mean over classes")
    return [path]


def _sheet(path: Path, ledger: Ledger, results: Results) -> list[Path]:
    """The same test images of the first class under each value of the parameter, first seed."""
    first = next(iter(results), None)
    if first is None:
        return []
    own = {t.column: t for t in results if (t.job.normal, t.job.seed) == (first.job.normal, first.job.seed)}
    scores = results[own[list(own)[-1]]]["scores"]
    split = open_split(first.job)
    shown = [index for label in (0, 1) for index in figures.spread(scores, split.labels, label, SHOWN // 2)]
    images = split.test[torch.tensor(shown)]
    rows: dict[str, Any] = {"input": figures.inputs(first.job.recipe, images)}
    for column, task in own.items():
        rows[column] = figures.heat(PaperModel.load(ledger.folder(task) / "model.safetensors"), images)
    if marks := figures.truth(split, shown, first.job.recipe.size):
        rows["truth"] = marks
    figures.sheet(path, rows, [split.kinds[index] for index in shown])
    return [path]
