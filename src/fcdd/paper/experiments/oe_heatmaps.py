"""Heatmaps of Fashion-MNIST with two corpora of Outlier Exposure side by side: the paper's Figures 4 and 12.

By default of trousers with CIFAR-100 and EMNIST; `--oe mnist` takes MNIST's digits in the place of EMNIST.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fcdd.data.fashion_mnist import CLASSES
from fcdd.paper import figures
from fcdd.paper.experiments import EXPERIMENTS, Experiment
from fcdd.paper.experiments.heatmaps import ROWS, rows_of, trained_on
from fcdd.paper.experiments.oe_source import TITLES, corpora
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.options import Options
from fcdd.paper.results import Results, facts, measured
from fcdd.paper.tables import Cell, Table

TROUSER = CLASSES[1]
NOMINAL, ANOMALOUS = 2, 6  # columns of each corpus


def plan(options: Options) -> list[Task]:
    """The three methods with either corpus, one seed; the autoencoder learns from nominal images, so once."""
    options.check_classes(["fmnist"])
    classes = options.classes_of("fmnist") if options.classes else [TROUSER]
    one = replace(options, seeds=1)
    tasks = [
        task
        for corpus in corpora(options)
        for method in ("fcdd", "hsc")
        for task in one.tasks("fmnist", classes, _column(method, corpus), _changes(method, corpus))
    ]
    return tasks + one.tasks("fmnist", classes, "ae", {"method": "ae", "exposure": corpora(options)[0]})


def _column(method: str, corpus: str) -> str:
    return f"{method} {corpus}"


def _changes(method: str, corpus: str) -> dict[str, str]:
    return {"exposure": corpus} if method == "fcdd" else {"method": method, "exposure": corpus}


def tables(options: Options, results: Results, tasks: Sequence[Task]) -> list[Table]:
    """AUC of the models shown."""
    columns = list(dict.fromkeys(task.column for task in tasks))
    rows = {
        normal: [Cell(measured(results, normal, column, "image_auroc")) for column in columns]
        for normal in dict.fromkeys(task.job.normal for task in tasks)
    }
    title = "Fashion-MNIST with two corpora: AUC of the models shown"
    return [Table(title, "class", columns, rows, facts(options, results, tasks))]


def sheets(options: Options, ledger: Ledger, results: Results) -> list[Path]:
    """For each class, blurred and not: nominal and anomalous images with the first corpus, then with the second."""
    names = [name for name in corpora(options) if any(task.column == _column("fcdd", name) for task in results)]
    shown: list[Path] = []
    for normal in dict.fromkeys(task.job.normal for task in results):
        own = {task.column: task for task in results if task.job.normal == normal}
        for blur, how in ((True, "blurred"), (False, "raw")):
            rows: dict[str, list[figures.Pixels]] = {}
            headings: list[str] = []
            for corpus in names:
                columns = {"fcdd": _column("fcdd", corpus), "hsc": _column("hsc", corpus), "ae": "ae"}
                by_method = {method: own[columns[method]] for method in ROWS if columns[method] in own}
                trained = trained_on(ledger, by_method, results, blur)
                chosen = trained.columns(NOMINAL, ANOMALOUS)
                for caption, images in rows_of(trained, chosen, trained.contrasts).items():
                    rows.setdefault(caption, []).extend(images)
                headings += [TITLES.get(corpus, corpus), *(trained.split.kinds[index] for index in chosen[1:])]
            path = options.output / f"oe-heatmaps-{normal}-{'-'.join(names)}-{how}.png".replace(" ", "_")
            figures.sheet(path, rows, headings)
            shown.append(path)
    return shown


EXPERIMENTS.register("oe-heatmaps")(
    Experiment("Heatmaps of Fashion-MNIST by CIFAR-100 beside EMNIST", plan, tables, sheets)
)
