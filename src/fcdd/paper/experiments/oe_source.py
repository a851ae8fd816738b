"""Fashion-MNIST with CIFAR-100 against EMNIST as Outlier Exposure."""

from __future__ import annotations

from collections.abc import Sequence

from fcdd.paper import published
from fcdd.paper.experiments import EXPERIMENTS, Experiment
from fcdd.paper.grid import Task
from fcdd.paper.options import Options
from fcdd.paper.published import MEAN, Figure
from fcdd.paper.results import Results, facts, measured
from fcdd.paper.tables import Cell, Table, with_mean

FIRST = "cifar100"
TITLES = {FIRST: "CIFAR-100", "emnist": "EMNIST", "mnist": "MNIST in place of EMNIST"}


def corpora(options: Options) -> tuple[str, str]:
    """CIFAR-100, and EMNIST or what the user named instead of it (`--oe mnist`)."""
    return FIRST, options.corpus or "emnist"


def plan(options: Options) -> list[Task]:
    """Every class with either corpus."""
    options.check_classes(["fmnist"])
    classes = options.classes_of("fmnist")
    return [task for name in corpora(options) for task in options.tasks("fmnist", classes, name, {"exposure": name})]


def tables(options: Options, results: Results, tasks: Sequence[Task]) -> list[Table]:
    """The paper's class-wise figures are those with CIFAR-100."""
    names = list(dict.fromkeys(task.column for task in tasks))

    def paper(column: str, row: str) -> Figure | None:
        return published.figure("fmnist", "fcdd", row) if column == FIRST else None

    rows = {
        row: [Cell(measured(results, row, name, "image_auroc"), paper(name, row)) for name in names]
        for row in published.rows("fmnist")
    }
    title = "Fashion-MNIST: AUC by source of Outlier Exposure"
    notes = [*facts(options, results, tasks), "The paper says of EMNIST that its mean is about 3 points lower."]
    table = Table(title, "class", [TITLES.get(name, name) for name in names], rows, notes)
    return [with_mean(table, [paper(name, MEAN) for name in names])]


EXPERIMENTS.register("oe-source")(Experiment("Outlier Exposure by CIFAR-100 against EMNIST", plan, tables))
