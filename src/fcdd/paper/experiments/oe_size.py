"""The number of auxiliary anomalies (the paper's Figure 6): AUC and heatmaps, by default of CIFAR-10's airplanes."""

from __future__ import annotations

from collections.abc import Sequence

from fcdd.paper.experiments import EXPERIMENTS, Experiment, Report
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.options import Options
from fcdd.paper.results import by_column, facts, gather, parameter_sheet, parameter_table

SIZES = ("2", "8", "128", "2048", "all")


def plan(options: Options) -> list[Task]:
    """One dataset, and the first class where the user named none: the paper's figure is of airplanes."""
    dataset = options.chosen(["cifar10", "fmnist"], "datasets")[0]
    options.check_classes([dataset])
    classes = options.classes_of(dataset) if options.classes else options.classes_of(dataset)[:1]
    return [
        task
        for size in SIZES
        for task in options.tasks(dataset, classes, size, {"exposure_limit": 0 if size == "all" else int(size)})
    ]


def report(options: Options, ledger: Ledger, tasks: Sequence[Task]) -> Report:
    """AUC by number of samples, and the same images under each number."""
    results = gather(ledger, tasks)
    title = "Number of Outlier Exposure samples: AUC"
    notes = facts(options, results, tasks)
    table = parameter_table(title, "samples", tasks, by_column(results, "image_auroc"), "oe-size", notes, SIZES)
    return Report([table], parameter_sheet(options.output / "oe-size-heatmaps.png", ledger, results))


EXPERIMENTS.register("oe-size")(Experiment("Number of Outlier Exposure samples", plan, report))
