"""Heatmaps of FCDD, of HSC by gradients and of an autoencoder: the paper's figures of one class and of all classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from fcdd.data import DATASETS, Split
from fcdd.paper import figures
from fcdd.paper.contrast import Contrast
from fcdd.paper.experiments import EXPERIMENTS, Experiment, Report
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.model import PaperModel
from fcdd.paper.options import Options
from fcdd.paper.results import facts, gather, measured, model_of
from fcdd.paper.run import open_split
from fcdd.paper.tables import Cell, Table

ROWS = {"fcdd": "FCDD", "hsc": "gradient (HSC)", "ae": "autoencoder"}
OFFERED = ("fmnist", "cifar10", "imagenet", "mvtec")
SHOWN = 6  # columns of nominal images, and as many of anomalous ones
EXAMPLES = 2  # columns of nominal images in the figure of all classes


@dataclass(frozen=True)
class Trained:
    """The models of one class by method, with blurred baselines or not, and the balanced contrast curve of each."""

    normal: str
    split: Split
    scores: Sequence[float]  # of FCDD where it ran, that the columns rise by
    models: Mapping[str, PaperModel]
    contrasts: Mapping[str, Contrast]

    def columns(self, nominal: int) -> list[int]:
        """Test indices: `nominal` images left, anomalous ones right, each by rising score."""
        shown = figures.spread(self.scores, self.split.labels, 0, nominal)
        return shown + figures.spread(self.scores, self.split.labels, 1, SHOWN)

    def headings(self, chosen: Sequence[int]) -> list[str]:
        """Kind and score of each image shown."""
        return [f"{self.split.kinds[index]} {self.scores[index]:.2g}" for index in chosen]


def plan(options: Options) -> list[Task]:
    """Every class by the three methods, with one seed: images have no mean."""
    datasets = options.chosen(OFFERED, "datasets")
    options.check_classes(datasets)
    one = replace(options, seeds=1)
    return [
        task
        for dataset in datasets
        for method in options.chosen(list(ROWS), "methods")
        for task in one.tasks(
            dataset, options.classes_of(dataset), method, {} if method == "fcdd" else {"method": method}
        )
    ]


def report(options: Options, ledger: Ledger, tasks: Sequence[Task]) -> Report:
    """Four sheets a class, and two of all classes: contrast over the test set or each map alone, blurred or not."""
    results = gather(ledger, tasks)
    shown: list[Path] = []
    cells: dict[str, list[Cell]] = {}
    for dataset in dict.fromkeys(task.job.recipe.dataset for task in results):
        own = {task: result for task, result in results.items() if task.job.recipe.dataset == dataset}
        classes = list(dict.fromkeys(task.job.normal for task in own))
        for normal in classes:
            cells[f"{dataset} {normal}"] = [Cell(measured(own, normal, method, "image_auroc")) for method in ROWS]
        for blur in (True, False):
            trained = [
                _trained(ledger, {t.column: t for t in own if t.job.normal == normal}, own, blur) for normal in classes
            ]
            how = "blurred" if blur else "raw"
            for one in trained:
                shown += [_class_sheet(options, dataset, one, how, local) for local in (False, True)]
            if len(trained) > 1:
                shown.append(_all_classes(options, dataset, trained, how))
    notes = [
        *facts(options, results, tasks),
        "Columns by increasing FCDD score, nominal images left, anomalous right. global: contrast over the complete "
        "balanced test set; local: each map by itself; classes: one contrast over the balanced test sets of all "
        "classes. blurred: gradient and autoencoder maps smoothed by FCDD's own kernel.",
    ]
    return Report([Table("AUC of the models shown", "problem", list(ROWS.values()), cells, notes)], shown)


def _trained(
    ledger: Ledger, own: Mapping[str, Task], results: Mapping[Task, Mapping[str, list[float]]], blur: bool
) -> Trained:
    by_method = {method: own[method] for method in ROWS if method in own}
    models = {method: model_of(ledger, task) for method, task in by_method.items()}
    models = {method: replace(model, recipe=replace(model.recipe, blur=blur)) for method, model in models.items()}
    first = next(iter(by_method.values()))
    split = open_split(first.job)
    contrasts = {method: figures.balanced_contrast(model, split) for method, model in models.items()}
    return Trained(first.job.normal, split, results[first]["scores"], models, contrasts)


def _rows(
    trained: Trained, chosen: Sequence[int], contrasts: Mapping[str, Contrast] | None, eta: float | None = None
) -> dict[str, list[figures.Pixels]]:
    """Input, heatmap of each method and truth; without `contrasts` each map is normalised by itself."""
    images = trained.split.test[torch.tensor(chosen)]
    recipe = next(iter(trained.models.values())).recipe
    rows = {"input": figures.inputs(recipe, images)}
    for method, model in trained.models.items():
        rows[ROWS[method]] = figures.heat(model, images, contrasts[method] if contrasts else None, eta)
    return rows | figures.truth(trained.split, chosen, recipe.size)


def _class_sheet(options: Options, dataset: str, trained: Trained, how: str, local: bool) -> Path:
    name = f"heatmaps-{dataset}-{trained.normal}-{'local' if local else 'global'}-{how}.png"
    path = options.output / name.replace(" ", "_")
    chosen = trained.columns(SHOWN)
    figures.sheet(path, _rows(trained, chosen, None if local else trained.contrasts), trained.headings(chosen))
    return path


def _all_classes(options: Options, dataset: str, trained: Sequence[Trained], how: str) -> Path:
    """One figure of all classes with one normalisation a method, so that classes compare."""
    united: dict[str, Contrast] = {}
    for one in trained:
        for method, contrast in one.contrasts.items():
            united.setdefault(method, Contrast()).merge(contrast)
    eta = DATASETS[dataset].class_eta or DATASETS[dataset].eta
    rows = {
        f"{one.normal}: {caption}": images
        for one in trained
        for caption, images in _rows(one, one.columns(EXAMPLES), united, eta).items()
    }
    path = options.output / f"heatmaps-{dataset}-classes-{how}.png"
    figures.sheet(path, rows, ["nominal"] * EXAMPLES + ["anomalous"] * SHOWN)
    return path


EXPERIMENTS.register("heatmaps")(Experiment("Heatmaps of FCDD, gradients and autoencoder", plan, report))
