"""Table 1 and its class-wise tables: AUC on Fashion-MNIST, CIFAR-10 and ImageNet-30, method against method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fcdd.data import DATASETS
from fcdd.paper import published
from fcdd.paper.experiments import EXPERIMENTS, Experiment
from fcdd.paper.grid import Task
from fcdd.paper.options import Options
from fcdd.paper.published import MEAN
from fcdd.paper.results import Results, cell, facts, of_dataset
from fcdd.paper.tables import Table, with_mean

OFFERED = ("fmnist", "cifar10", "imagenet")
NAMES = {
    "ae": "AE",
    "svdd": "Deep SVDD",
    "geo": "GEO",
    "geo+": "GEO+",
    "focal": "Focal",
    "geo+ with OE": "GEO+ with OE",
    "sad": "Deep SAD",
    "hsc": "HSC",
    "fcdd": "FCDD",
}
EXPOSED = {"geo+ with OE": "geo+oe"}  # columns of the paper whose method has another name here


def plan(options: Options) -> list[Task]:
    """Every class of the chosen datasets by every chosen method."""
    datasets = options.chosen(OFFERED, "datasets")
    options.check_classes(datasets)
    return [
        task
        for dataset in datasets
        for column in options.chosen(list(NAMES), "methods")
        for task in options.tasks(dataset, options.classes_of(dataset), column, _changes(column))
    ]


def _changes(column: str) -> dict[str, str]:
    return {} if column == "fcdd" else {"method": EXPOSED.get(column, column)}


def tables(options: Options, results: Results, tasks: Sequence[Task]) -> list[Table]:
    """The means of Table 1, then the class-wise tables of the appendix."""
    datasets = [dataset for dataset in OFFERED if any(task.job.recipe.dataset == dataset for task in tasks)]
    by_class = {dataset: _class_wise(options, results, tasks, dataset) for dataset in datasets}
    rows = {DATASETS[dataset].title: table.rows[MEAN] for dataset, table in by_class.items()}
    overview = Table("Table 1: mean AUC over classes", "dataset", list(NAMES.values()), rows)
    return [overview, *by_class.values()]


def _class_wise(options: Options, results: Results, tasks: Sequence[Task], dataset: str) -> Table:
    planned = [task for task in tasks if task.job.recipe.dataset == dataset]
    own = of_dataset(results, dataset)
    known, here = published.rows(dataset), list(dict.fromkeys(task.job.normal for task in planned))
    papers = bool(set(known) & set(here))  # not so with Imagenette in ImageNet's place
    rows = {
        row: [cell(own, dataset, row, name, "image_auroc") for name in NAMES] for row in (known if papers else here)
    }
    title = f"{DATASETS[dataset].title}: AUC by nominal class"
    table = Table(title, "class", list(NAMES.values()), rows, facts(options, own, planned))
    table = with_mean(table, [published.figure(dataset, name, MEAN) for name in NAMES])
    if papers:
        return table
    means = [replace(cell, published=None) if cell.measured else cell for cell in table.rows[MEAN]]
    told = f"{len(here)} classes that are not the paper's {len(known)}: means are not compared with the published ones."
    return Table(title, "class", table.columns, {**table.rows, MEAN: means}, [*table.notes, told])


EXPERIMENTS.register("table1")(
    Experiment("Table 1 and its class-wise tables: AUC on Fashion-MNIST, CIFAR-10 and ImageNet-30", plan, tables)
)
