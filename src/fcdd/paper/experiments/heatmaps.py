"""Heatmaps of FCDD, of HSC by gradients and of an autoencoder: the paper's figures of one class and of all classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from fcdd.data import DATASETS, Split
from fcdd.paper import figures
from fcdd.paper.contrast import Contrast
from fcdd.paper.experiments import EXPERIMENTS, Experiment
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.model import PaperModel
from fcdd.paper.options import Options
from fcdd.paper.results import Results, facts, measured, model_of, of_dataset, sharpened
from fcdd.paper.run import open_split
from fcdd.paper.tables import Cell, Table
from fcdd.training.methods import METHODS

ROWS = {"fcdd": "FCDD", "hsc": "gradient (HSC)", "ae": "autoencoder"}
OFFERED = ("fmnist", "cifar10", "imagenet", "mvtec")
SHOWN = 6  # columns of nominal images, and as many of anomalous ones
EXAMPLES = 2  # columns of nominal images in the figure of all classes
BAND = 2  # classes side by side in it


@dataclass(frozen=True)
class Trained:
    """The models of one class by method, with blurred baselines or not, and the balanced contrast curve of each."""

    normal: str
    split: Split
    scores: Sequence[float]  # of FCDD where it ran, that the columns rise by
    models: Mapping[str, PaperModel]
    contrasts: Mapping[str, Contrast]

    def columns(self, nominal: int, anomalous: int = SHOWN) -> list[int]:
        """Test indices: `nominal` images left, anomalous ones right, each by rising score."""
        shown = figures.spread(self.scores, self.split.labels, 0, nominal)
        return shown + figures.spread(self.scores, self.split.labels, 1, anomalous)

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


def tables(options: Options, results: Results, tasks: Sequence[Task]) -> list[Table]:
    """AUC of the models shown."""
    problems = dict.fromkeys((task.job.recipe.dataset, task.job.normal) for task in results)
    cells = {
        f"{dataset} {normal}": [
            Cell(measured(of_dataset(results, dataset), normal, method, "image_auroc")) for method in ROWS
        ]
        for dataset, normal in problems
    }
    notes = [
        *facts(options, results, tasks),
        "Columns by increasing FCDD score, nominal images left, anomalous right. global: contrast over the complete "
        "balanced test set; local: each map by itself; classes: one contrast over the balanced test sets of all "
        "classes. blurred: gradient and autoencoder maps smoothed by FCDD's own kernel.",
    ]
    return [Table("AUC of the models shown", "problem", list(ROWS.values()), cells, notes)]


def sheets(options: Options, ledger: Ledger, results: Results) -> list[Path]:
    """Four sheets a class, and two of all classes: contrast over the test set or each map alone, blurred or not.

    These are the paper's Figures 5, 13 and 15 to 20; the name of a file carries dataset, corpus and class.
    """
    shown: list[Path] = []
    for dataset in dict.fromkeys(task.job.recipe.dataset for task in results):
        own = of_dataset(results, dataset)
        classes = list(dict.fromkeys(task.job.normal for task in own))
        name = f"{dataset}-{corpus_of(own)}"
        for blur in (True, False):
            trained = [
                trained_on(ledger, {t.column: t for t in own if t.job.normal == normal}, own, blur)
                for normal in classes
            ]
            how = "blurred" if blur else "raw"
            for one in trained:
                shown += [_class_sheet(options, name, one, how, local) for local in (False, True)]
            if len(trained) > 1:
                shown.append(_all_classes(options, dataset, name, trained, how))
    return shown


def corpus_of(results: Results) -> str:
    """The auxiliary anomalies of models that learn from them, as a part of a file's name."""
    task = next((task for task in results if not METHODS[task.job.recipe.method].nominal_only), next(iter(results)))
    return task.job.recipe.exposure.partition(":")[0]


def trained_on(ledger: Ledger, own: Mapping[str, Task], results: Results, blur: bool) -> Trained:
    """The models of one class: `own` has a task a method, the first of which gives the order of columns."""
    by_method = {method: own[method] for method in ROWS if method in own}
    models = {method: sharpened(model_of(ledger, task), blur) for method, task in by_method.items()}
    first = next(iter(by_method.values()))
    split = open_split(first.job)
    contrasts = {method: figures.balanced_contrast(model, split) for method, model in models.items()}
    return Trained(first.job.normal, split, results[first]["scores"], models, contrasts)


def rows_of(
    trained: Trained, chosen: Sequence[int], contrasts: Mapping[str, Contrast] | None, eta: float | None = None
) -> dict[str, list[figures.Pixels]]:
    """Input, heatmap of each method and truth; without `contrasts` each map is normalised by itself."""
    images = trained.split.test[torch.tensor(chosen)]
    recipe = next(iter(trained.models.values())).recipe
    rows = {"input": figures.inputs(recipe, images)}
    for method, model in trained.models.items():
        rows[ROWS[method]] = figures.heat(model, images, contrasts[method] if contrasts else None, eta)
    return rows | figures.truth(trained.split, chosen, recipe.size)


def _class_sheet(options: Options, name: str, trained: Trained, how: str, local: bool) -> Path:
    file = f"heatmaps-{name}-{trained.normal}-{'local' if local else 'global'}-{how}.png"
    path = options.output / file.replace(" ", "_")
    chosen = trained.columns(SHOWN)
    figures.sheet(path, rows_of(trained, chosen, None if local else trained.contrasts), trained.headings(chosen))
    return path


def _all_classes(options: Options, dataset: str, name: str, trained: Sequence[Trained], how: str) -> Path:
    """One figure of all classes with one normalisation a method, so that classes compare; two classes a band."""
    united: dict[str, Contrast] = {}
    for one in trained:
        for method, contrast in one.contrasts.items():
            united.setdefault(method, Contrast()).merge(contrast)
    eta = DATASETS[dataset].class_eta or DATASETS[dataset].eta
    blocks = [(one.normal, rows_of(one, one.columns(EXAMPLES), united, eta)) for one in trained]
    columns = EXAMPLES + SHOWN
    rows: dict[str, list[figures.Pixels]] = {}
    for at in range(0, len(blocks), BAND):
        band = blocks[at : at + BAND]
        names = " | ".join(normal for normal, _ in band)
        for caption in band[0][1]:
            images = [image for _, block in band for image in _filled(block[caption], columns)]
            rows[f"{names}: {caption}"] = _filled(images, BAND * columns)
    path = options.output / f"heatmaps-{name}-classes-{how}.png"
    figures.sheet(path, rows, (["nominal"] * EXAMPLES + ["anomalous"] * SHOWN) * BAND)
    return path


def _filled(images: Sequence[figures.Pixels], count: int) -> list[figures.Pixels]:
    """`images`, and white ones up to `count`."""
    return [*images, *(np.full((1, 1, 3), 255, np.uint8) for _ in range(count - len(images)))]


EXPERIMENTS.register("heatmaps")(Experiment("Heatmaps of FCDD, gradients and autoencoder", plan, tables, sheets))
