"""Fashion-MNIST with CIFAR-100 against EMNIST as Outlier Exposure."""

from __future__ import annotations

from collections.abc import Sequence

from fcdd.paper import published
from fcdd.paper.experiments import EXPERIMENTS, Experiment, Report
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.options import Options
from fcdd.paper.published import MEAN, Figure
from fcdd.paper.results import facts, gather, measured
from fcdd.paper.tables import Cell, Table, with_mean

EXPOSURES = {"cifar100": "CIFAR-100", "emnist": "EMNIST"}


def plan(options: Options) -> list[Task]:
    """Every class with either corpus."""
    options.check_classes(["fmnist"])
    classes = options.classes_of("fmnist")
    return [task for name in EXPOSURES for task in options.tasks("fmnist", classes, name, {"exposure": name})]


def report(options: Options, ledger: Ledger, tasks: Sequence[Task]) -> Report:
    """The paper's class-wise figures are those with CIFAR-100."""
    results = gather(ledger, tasks)

    def paper(column: str, row: str) -> Figure | None:
        return published.figure("fmnist", "fcdd", row) if column == "cifar100" else None

    rows = {
        row: [Cell(measured(results, row, name, "image_auroc"), paper(name, row)) for name in EXPOSURES]
        for row in published.rows("fmnist")
    }
    title = "Fashion-MNIST: AUC by source of Outlier Exposure"
    notes = [*facts(options, results, tasks), "The paper says of EMNIST that its mean is about 3 points lower."]
    table = Table(title, "class", list(EXPOSURES.values()), rows, notes)
    return Report([with_mean(table, [paper(name, MEAN) for name in EXPOSURES])])


EXPERIMENTS.register("oe-source")(Experiment("Outlier Exposure by CIFAR-100 against EMNIST", plan, report))
