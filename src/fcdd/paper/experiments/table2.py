"""Table 2: pixel AUC on MVTec-AD, unsupervised and semi-supervised."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from fcdd.paper import published
from fcdd.paper.experiments import EXPERIMENTS, Experiment, Report
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.options import Options
from fcdd.paper.published import DEVIATION, MEAN
from fcdd.paper.results import PIXEL_METRICS, Results, compared_metric, facts, gather, measured
from fcdd.paper.tables import NO_LIMIT, Cell, Table, with_mean

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
RUNNABLE = ("ae-ss", "ae-l2", "fcdd", SEMI)


def plan(options: Options) -> list[Task]:
    """Every class by the chosen of the four methods that are implemented here."""
    options.check_classes(["mvtec"])
    classes = options.classes_of("mvtec")
    recipes = {
        "ae-ss": ("mvtec", {"method": "ae", "reconstruction": "ssim"}),
        "ae-l2": ("mvtec", {"method": "ae", "reconstruction": "l2"}),
        "fcdd": ("mvtec", {"objective": "authors"} if options.authors else {}),
        SEMI: ("mvtec-semi", {}),
    }
    return [
        task
        for name in options.chosen(RUNNABLE, "methods")
        for task in options.tasks(recipes[name][0], classes, name, recipes[name][1])
    ]


def report(options: Options, ledger: Ledger, tasks: Sequence[Task]) -> Report:
    """Both ways to take a pixel AUC, each in a column of its own, and the image AUC of the same models."""
    results = gather(ledger, tasks)
    compared = compared_metric(options)
    ran = {task.column for task in results}
    columns = [(name, metric) for name in COMPETITORS for metric in (PIXEL_METRICS if name in ran else (compared,))]
    rows = {
        row: [_cell(results, row, name, metric, compared) for name, metric in columns]
        for row in published.rows("mvtec")
    }
    headings = [COMPETITORS[name] + (f", {PIXEL_METRICS[metric]}" if name in ran else "") for name, metric in columns]
    notes = [
        *facts(options, results, tasks),
        "Mean over images: of each anomalous image's own pixel AUC, as the paper words its figures. Pooled: over all "
        "pixels of all test images, as the authors' code takes them and most other papers do. The published figures "
        f"stand beside the one that the protocol has: {PIXEL_METRICS[compared]}.",
    ]
    table = Table("Table 2: pixel AUC on MVTec-AD", "class", headings, rows, notes)
    means = [published.figure("mvtec", name, MEAN) if metric == compared else None for name, metric in columns]
    whole = with_mean(table, means)
    whole.rows[DEVIATION] = [
        _deviation([cells[at] for cells in rows.values()], name if metric == compared else "")
        for at, (name, metric) in enumerate(columns)
    ]
    return Report([whole, _image_auc(results)])


def _cell(results: Results, row: str, name: str, metric: str, compared: str) -> Cell:
    paper = published.figure("mvtec", name, row) if metric == compared else None
    return Cell(measured(results, row, name, metric), paper)


def _deviation(cells: Sequence[Cell], name: str) -> Cell:
    """The standard deviation over classes, beside the published one of `name`; of all classes or of none."""
    ran = [cell.measured for cell in cells if cell.measured]
    if 0 < len(ran) < len(cells):
        return Cell()
    seeds = sorted(set.intersection(*map(set, ran))) if ran else []
    each = {seed: statistics.pstdev(of_class[seed] for of_class in ran) for seed in seeds}
    return Cell(each, published.figure("mvtec", name, DEVIATION), NO_LIMIT)


def _image_auc(results: Results) -> Table:
    """A figure of the same models that the paper does not give: there is nothing to compare it with."""
    rows = {
        row: [Cell(measured(results, row, name, "image_auroc")) for name in ("fcdd", SEMI)]
        for row in published.rows("mvtec")
        if any(task.job.normal == row for task in results)
    }
    return Table("Image AUC of the same models", "class", [COMPETITORS[name] for name in ("fcdd", SEMI)], rows)


EXPERIMENTS.register("table2")(
    Experiment("Table 2: pixel AUC on MVTec-AD, unsupervised and semi-supervised", plan, report)
)
