"""Table 2: pixel AUC on MVTec-AD, unsupervised and semi-supervised."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

import torch

from fcdd.paper import published
from fcdd.paper.experiments import EXPERIMENTS, Experiment
from fcdd.paper.figures import Pixels, at_ranks, heat, inputs, sheet, spread, truth
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.options import Options
from fcdd.paper.published import DEVIATION, MEAN, Figure
from fcdd.paper.results import PIXEL_METRICS, Results, compared_metric, facts, first_of_classes, measured, model_of
from fcdd.paper.run import open_split
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


def tables(options: Options, results: Results, tasks: Sequence[Task]) -> list[Table]:
    """Both ways to take a pixel AUC, each in a column of its own, and the image AUC of the same models."""
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
    return [whole, _image_auc(results)]


def _cell(results: Results, row: str, name: str, metric: str, compared: str) -> Cell:
    paper = published.figure("mvtec", name, row) if metric == compared else None
    return Cell(measured(results, row, name, metric), paper)


def _deviation(cells: Sequence[Cell], name: str) -> Cell:
    """The standard deviation over the classes that ran, beside the published one of `name`.

    Where not all classes ran, the published figure is that of the paper's figures of the same classes.
    """
    ran = [cell for cell in cells if cell.measured]
    seeds = sorted(set.intersection(*(set(cell.measured) for cell in ran))) if len(ran) > 1 else []
    each = {seed: statistics.pstdev(cell.measured[seed] for cell in ran) for seed in seeds}
    paper = published.figure("mvtec", name, DEVIATION)
    if 0 < len(ran) < len(cells):
        known = [cell.published.value for cell in ran if cell.published]
        paper = Figure(statistics.pstdev(known), "Table 2") if len(known) == len(ran) > 1 else None
    return Cell(each, paper, NO_LIMIT)


def _image_auc(results: Results) -> Table:
    """A figure of the same models that the paper does not give: there is nothing to compare it with."""
    rows = {
        row: [Cell(measured(results, row, name, "image_auroc")) for name in ("fcdd", SEMI)]
        for row in published.rows("mvtec")
        if any(task.job.normal == row for task in results)
    }
    return Table("Image AUC of the same models", "class", [COMPETITORS[name] for name in ("fcdd", SEMI)], rows)


def figures(options: Options, ledger: Ledger, results: Results) -> list[Path]:
    """One column a class: a nominal and an anomalous image, FCDD's heatmap by itself, truth (the paper's Figure 1)."""
    shown: dict[str, list[Pixels]] = {"nominal": [], "anomalous": [], "FCDD": [], "truth": []}
    first = first_of_classes({task: result for task, result in results.items() if task.column == "fcdd"})
    for task in first:
        split, recipe = open_split(task.job), task.job.recipe
        scores = results[task]["scores"]
        (anomalous,) = at_ranks(scores, split.labels, 1)
        nominal = spread(scores, split.labels, 0, 1)[0]
        image = split.test[torch.tensor([anomalous])]
        shown["nominal"] += inputs(recipe, split.test[torch.tensor([nominal])])
        shown["anomalous"] += inputs(recipe, image)
        shown["FCDD"] += heat(model_of(ledger, task), image)
        shown["truth"] += truth(split, [anomalous], recipe.size)["truth"]
    if not first:
        return []
    path = options.output / "table2-heatmaps.png"
    sheet(path, shown, [task.job.normal for task in first])
    return [path]


EXPERIMENTS.register("table2")(
    Experiment("Table 2: pixel AUC on MVTec-AD, unsupervised and semi-supervised", plan, tables, figures)
)
