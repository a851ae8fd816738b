"""Table 1 and its class-wise tables: AUC on Fashion-MNIST, CIFAR-10 and ImageNet-30, method against method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fcdd.data import DATASETS
from fcdd.paper import published
from fcdd.paper.experiments import EXPERIMENTS, Experiment, Report
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.options import Options
from fcdd.paper.published import MEAN
from fcdd.paper.results import cell, facts, gather
from fcdd.paper.tables import Table, with_mean

OFFERED = ("fmnist", "cifar10", "imagenet")
METHODS = ("ae", "svdd", "geo", "focal", "sad", "hsc", "fcdd")
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


def plan(options: Options) -> list[Task]:
    """Every class of the chosen datasets by every chosen method."""
    datasets = options.chosen(OFFERED, "datasets")
    options.check_classes(datasets)
    return [
        task
        for dataset in datasets
        for method in options.chosen(METHODS, "methods")
        for task in options.tasks(
            dataset, options.classes_of(dataset), method, {} if method == "fcdd" else {"method": method}
        )
    ]


def report(options: Options, ledger: Ledger, tasks: Sequence[Task]) -> Report:
    """The means of Table 1, then the class-wise tables of the appendix."""
    datasets = options.chosen(OFFERED, "datasets")
    by_class = [_class_wise(options, ledger, tasks, dataset) for dataset in datasets]
    rows = {}
    for dataset, table in zip(datasets, by_class, strict=True):
        rows[DATASETS[dataset].title] = table.rows[MEAN]
    overview = Table("Table 1: mean AUC over classes", "dataset", list(NAMES.values()), rows)
    return Report([overview, *by_class])


def _class_wise(options: Options, ledger: Ledger, tasks: Sequence[Task], dataset: str) -> Table:
    own = [task for task in tasks if task.job.recipe.dataset == dataset]
    results = gather(ledger, own)
    known, here = published.rows(dataset), DATASETS[dataset].present(options.data)
    papers = bool(set(known) & set(here))  # not so with Imagenette in ImageNet's place
    rows = {
        row: [cell(results, dataset, row, name, "image_auroc") for name in NAMES] for row in (known if papers else here)
    }
    title = f"{DATASETS[dataset].title}: AUC by nominal class"
    table = Table(title, "class", list(NAMES.values()), rows, facts(options, results, own))
    table = with_mean(table, [published.figure(dataset, name, MEAN) for name in NAMES])
    if papers:
        return table
    means = [replace(cell, published=None) if cell.measured else cell for cell in table.rows[MEAN]]
    told = f"{len(here)} classes that are not the paper's {len(known)}: means are not compared with the published ones."
    return Table(title, "class", table.columns, {**table.rows, MEAN: means}, [*table.notes, told])


EXPERIMENTS.register("table1")(
    Experiment("Table 1 and its class-wise tables: AUC on Fashion-MNIST, CIFAR-10 and ImageNet-30", plan, report)
)
