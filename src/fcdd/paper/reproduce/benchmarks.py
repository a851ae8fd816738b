"""Tables 1 and 2 and the comparison of Outlier Exposure sources: AUC by class, method against method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fcdd.data.imagenet import IMAGENET30
from fcdd.paper import published
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.published import MEAN, Figure
from fcdd.paper.reproduce.notes import Results, cell, facts, gather
from fcdd.paper.reproduce.options import Options, present
from fcdd.paper.reproduce.report import Report
from fcdd.paper.tables import Cell, Table, with_mean

EXPOSURES = {"cifar100": "CIFAR-100", "emnist": "EMNIST"}
DATASETS = {"fmnist": "Fashion-MNIST", "cifar10": "CIFAR-10", "imagenet": "ImageNet-30"}
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


def table1_plan(options: Options) -> list[Task]:
    datasets = options.chosen(list(DATASETS), "datasets")
    options.check_classes(datasets)
    return [
        task
        for dataset in datasets
        for method in options.chosen(METHODS, "methods")
        for task in options.tasks(dataset, options.classes_of(dataset), method, _method(method))
    ]


def _method(name: str) -> dict[str, str]:
    return {} if name == "fcdd" else {"method": name}


def table1_report(options: Options, ledger: Ledger, tasks: Sequence[Task]) -> Report:
    """The means of Table 1, then the class-wise tables of the appendix."""
    datasets = options.chosen(list(DATASETS), "datasets")
    by_class = [_class_wise(options, ledger, tasks, dataset) for dataset in datasets]
    columns = [name for name in NAMES if any(name in published.columns(dataset) for dataset in DATASETS)]
    rows = {}
    for dataset, table in zip(datasets, by_class, strict=True):
        means = dict(zip(table.columns, table.rows[MEAN], strict=True))
        rows[DATASETS[dataset]] = [means[NAMES[name]] for name in columns]
    overview = Table("Table 1: mean AUC over classes", "dataset", [NAMES[name] for name in columns], rows)
    return Report([overview, *by_class])


def _class_wise(options: Options, ledger: Ledger, tasks: Sequence[Task], dataset: str) -> Table:
    own = [task for task in tasks if task.job.recipe.dataset == dataset]
    results = gather(ledger, own)
    classes = published.rows(dataset) or present(dataset, options.data)
    rows = {row: [cell(results, dataset, row, name, "image_auroc") for name in NAMES] for row in classes}
    title = f"{DATASETS[dataset]}: AUC by nominal class"
    table = Table(title, "class", list(NAMES.values()), rows, facts(options, results, own))
    table = with_mean(table, [published.figure(dataset, name, MEAN) for name in NAMES])
    if dataset != "imagenet" or set(classes) == set(IMAGENET30):
        return table
    # Imagenette in its place: other classes, so that means are not for comparison.
    means = [replace(cell, published=None) if cell.measured else cell for cell in table.rows[MEAN]]
    told = f"{len(classes)} classes that are not the paper's 30: means are not compared with the published ones."
    return Table(title, "class", table.columns, {**table.rows, MEAN: means}, [*table.notes, told])


SEMI = "fcdd semi-supervised"
COMPETITORS = {
    "ae-ss": "AE-SS",
    "ae-l2": "AE-L2",
    "anogan": "AnoGAN",
    "cnnfd": "CNNFD",
    "vevae": "VEVAE",
    "smai": "SMAI",
    "gdr": "GDR",
    "p-net": "P-NET",
    "fcdd": "FCDD",
    SEMI: "FCDD semi-supervised",
}


def table2_plan(options: Options) -> list[Task]:
    options.check_classes(["mvtec"])
    classes = options.classes_of("mvtec")
    runnable = {
        "ae-ss": ("mvtec", {"method": "ae", "reconstruction": "ssim"}),
        "ae-l2": ("mvtec", {"method": "ae", "reconstruction": "l2"}),
        "fcdd": ("mvtec", {"objective": "authors"} if options.authors else {}),
        SEMI: ("mvtec-semi", {}),
    }
    return [
        task
        for name in options.chosen(list(runnable), "methods")
        for task in options.tasks(runnable[name][0], classes, name, runnable[name][1])
    ]


def table2_report(options: Options, ledger: Ledger, tasks: Sequence[Task]) -> Report:
    """Pixel AUC pooled over all test pixels, and the mean over anomalous images beside it."""
    results = gather(ledger, tasks)
    rows = {
        row: [cell(results, "mvtec", row, name, "pixel_auroc") for name in COMPETITORS]
        for row in published.rows("mvtec")
    }
    title = "Table 2: pixel AUC on MVTec-AD, pooled over all pixels of all test images"
    table = Table(title, "class", list(COMPETITORS.values()), rows, facts(options, results, tasks))
    table = with_mean(table, [published.figure("mvtec", name, MEAN) for name in COMPETITORS])
    return Report([table, _beside(results)])


def _beside(results: Results) -> Table:
    """Figures of the same models that the paper does not give: there is nothing to compare them with."""
    figures = {"pixel_auroc_mean": "pixel AUC, mean over anomalous images", "image_auroc": "image AUC"}
    columns = [(name, metric) for name in ("fcdd", SEMI) for metric in figures]
    rows = {
        row: [Cell(cell(results, "mvtec", row, name, metric).measured) for name, metric in columns]
        for row in published.rows("mvtec")
        if any(task.job.normal == row for task in results)
    }
    headings = [f"{COMPETITORS[name]}: {figures[metric]}" for name, metric in columns]
    return Table("Other figures of the same models", "class", headings, rows)


def source_plan(options: Options) -> list[Task]:
    options.check_classes(["fmnist"])
    classes = options.classes_of("fmnist")
    return [task for name in EXPOSURES for task in options.tasks("fmnist", classes, name, {"exposure": name})]


def source_report(options: Options, ledger: Ledger, tasks: Sequence[Task]) -> Report:
    """The paper's class-wise figures are those with CIFAR-100."""
    results = gather(ledger, tasks)

    def paper(column: str, row: str) -> Figure | None:
        return published.figure("fmnist", "fcdd", row) if column == "cifar100" else None

    rows = {
        row: [Cell(cell(results, "fmnist", row, name, "image_auroc").measured, paper(name, row)) for name in EXPOSURES]
        for row in published.rows("fmnist")
    }
    title = "Fashion-MNIST: AUC by source of Outlier Exposure"
    notes = [*facts(options, results, tasks), "The paper says of EMNIST that its mean is about 3 points lower."]
    table = Table(title, "class", list(EXPOSURES.values()), rows, notes)
    return Report([with_mean(table, [paper(name, MEAN) for name in EXPOSURES])])
