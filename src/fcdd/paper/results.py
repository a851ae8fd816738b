"""What experiments share: results of tasks as cells of a table, what a table says of itself, studies of a parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from fcdd.nn import networks
from fcdd.paper import figures, published
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.model import PaperModel
from fcdd.paper.options import Options
from fcdd.paper.run import open_split
from fcdd.paper.tables import Cell, Table, mean_cell
from fcdd.training import recipe as recipes
from fcdd.training.methods import METHODS

Results = Mapping[Task, dict[str, Any]]  # of the tasks that are done
Measure = Callable[[str, str], dict[int, float]]  # a parameter's value and a class → seed → figure
SAMPLES, CLASSES_SHOWN, FEW_CLASSES = 3, 7, 2  # of a parameter's sheet: images of a class while there are few, classes
LABEL = 24  # letters of a row's name

# Pixel AUC in result files, by what it is called in tables.
PIXEL_METRICS = {"pixel_auroc_mean": "mean over images", "pixel_auroc": "pooled"}


def gather(ledger: Ledger, tasks: Sequence[Task]) -> Results:
    """The results of those tasks that are done."""
    return {task: result for task in tasks if (result := ledger.result(task)) is not None}


def model_of(ledger: Ledger, task: Task) -> PaperModel:
    """The trained model of a task that is done."""
    return PaperModel.load(ledger.folder(task) / "model.safetensors")


def of_dataset(results: Results, dataset: str) -> Results:
    """Those of `results` that are of one dataset."""
    return {task: result for task, result in results.items() if task.job.recipe.dataset == dataset}


def measured(results: Results, row: str, column: str, metric: str) -> dict[int, float]:
    """seed → figure of class `row` in `column`."""
    return {
        task.job.seed: float(result[metric])
        for task, result in results.items()
        if task.job.normal == row and task.column == column
    }


def cell(results: Results, table: str, row: str, column: str, metric: str) -> Cell:
    """The measured figures of class `row` in `column`, over seeds, beside the published one of `table`."""
    return Cell(measured(results, row, column, metric), published.figure(table, column, row))


def compared_metric(options: Options) -> str:
    """The pixel AUC that stands beside the published one.

    The paper words it as the mean over all samples; the authors' code pools all pixels of all test images.
    """
    return "pixel_auroc" if options.authors else "pixel_auroc_mean"


def facts(options: Options, results: Results, tasks: Sequence[Task]) -> list[str]:
    """The lines under a table: budget, seeds, protocol, the data that were read, start weights."""
    if not results:
        return ["Nothing has run yet: all figures are the published ones."]
    seeds = sorted({task.job.seed for task in results})
    budget = "" if options.epochs else f" {options.budget}"
    told = [
        f"Budget{budget}: {_epochs(results)}; {len(seeds)} seed{'s' if len(seeds) > 1 else ''} "
        f"({', '.join(map(str, seeds))}) where the paper has five; {len(results)} of {len(tasks)} jobs done.",
        f"Protocol: {'the authors’ code' if options.authors else 'the paper'}.",
    ]
    if changed := [f"{name} = {value}" for name, value in options.overrides.items()]:
        told.append(f"Changed from the recipe: {', '.join(changed)}.")
    if cooled := {task.job.recipe.cooldown for task in results} - {0.0}:
        told.append(f"Shortened: the learning rate falls to zero over the last {max(cooled):.0%} of the training.")
    told += [f"Data: {text}." for text in _distinct(result["data"] for result in results.values())]
    told += [f"Anomalies in training: {text}." for text in _distinct(r["exposure"] for r in results.values())]
    starts = {_start(task, result) for task, result in results.items() if _has_trunk(task)}
    return told + [f"{text}." for text in sorted(starts)]


def _has_trunk(task: Task) -> bool:
    """Whether this model could start from ImageNet weights, so that a table has to say what it started from."""
    return task.job.recipe.network in networks.PRETRAINED and METHODS[task.job.recipe.method].pretrainable


def _start(task: Task, result: Mapping[str, Any]) -> str:
    network = task.job.recipe.network
    stand_in = "" if network == "vgg11" else f"; stand-in trunk {network.upper()} for the paper's VGG11-BN"
    return f"Start weights: {result['job']['weights']}{stand_in}"


def _epochs(results: Results) -> str:
    """`4 of the paper's 400 epochs`, for each dataset."""
    of_paper = {recipes.load(name).dataset: recipes.load(name).epochs for name in recipes.names()}
    ran = sorted({(task.job.recipe.dataset, task.job.recipe.epochs) for task in results})
    return ", ".join(f"{name} {epochs} of the paper's {of_paper[name]} epochs" for name, epochs in ran)


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def by_column(results: Results, metric: str) -> Measure:
    """The measure of a study whose columns of tasks are the parameter's values."""
    return lambda row, normal: measured(results, normal, row, metric)


def parameter_table(
    title: str, corner: str, tasks: Sequence[Task], measure: Measure, paper: str, notes: list[str], rows: Sequence[str]
) -> Table:
    """A row a value of the parameter: the mean over classes and each class.

    The paper gives means over all classes of the dataset, in its table `paper`. They stand beside the measured ones
    where these are over the same classes, else in a note.
    """
    classes = list(dict.fromkeys(task.job.normal for task in tasks))
    same = set(classes) == set(published.rows(tasks[0].job.recipe.dataset))
    means = {row: published.figure(paper, "fcdd", row) for row in published.rows(paper)}
    cells: dict[str, list[Cell]] = {}
    for row in rows:
        each = [Cell(measure(row, normal)) for normal in classes]
        cells[row] = [mean_cell(each, means.get(row) if same else None), *each]
    known = [f"{row}: {figure.value}" for row, figure in means.items() if figure]
    told = [] if same or not known else [f"The paper's means over all classes, not compared: {', '.join(known)}."]
    return Table(title, corner, ["mean", *classes], cells, [*notes, *told])


def parameter_curve(path: Path, table: Table, x_name: str, y_name: str) -> list[Path]:
    """The means of a parameter's table as a figure, with the published ones that they are compared with."""
    means = {float(row): cells[0] for row, cells in table.rows.items()}
    ran = [(x, cell.mean) for x, cell in means.items() if cell.mean is not None]
    if not ran:
        return []
    known = [(x, cell.published.value) for x, cell in means.items() if cell.published]
    series = {"measured": ran, **({"published": known} if known else {})}
    figures.curves(path, series, x_name, f"{y_name}, mean over classes")
    return [path]


def parameter_sheet(
    path: Path, ledger: Ledger, results: Results, headings: Mapping[str, str], blur: bool = True
) -> list[Path]:
    """Anomalous test images, one a row, under the models of each column of tasks that `headings` names.

    Columns that did not run for all classes are left out. `blur` smooths the maps of gradients and autoencoders.
    """
    first = first_of_classes({task: result for task, result in results.items() if task.column in headings})
    models: dict[str, dict[str, PaperModel]] = {}
    for column, heading in headings.items():
        own = [
            task
            for task in results
            if task.column == column and any(_same_problem(task, shown) for shown in first[:CLASSES_SHOWN])
        ]
        if len(own) == len(first[:CLASSES_SHOWN]):
            models[heading] = {task.job.normal: sharpened(model_of(ledger, task), blur) for task in own}
    return value_sheet(path, first, results, models)


def sharpened(model: PaperModel, blur: bool) -> PaperModel:
    """The same model with heatmaps of baselines smoothed or not."""
    return replace(model, recipe=replace(model.recipe, blur=blur))


def _same_problem(one: Task, other: Task) -> bool:
    return (one.job.normal, one.job.seed) == (other.job.normal, other.job.seed)


def first_of_classes(results: Results) -> list[Task]:
    """One task of each class: the first of its lowest seed."""
    chosen: dict[str, Task] = {}
    for task in results:
        before = chosen.get(task.job.normal)
        if before is None or task.job.seed < before.job.seed:
            chosen[task.job.normal] = task
    return list(chosen.values())


def value_sheet(
    path: Path, tasks: Sequence[Task], results: Results, models: Mapping[str, Mapping[str, PaperModel]]
) -> list[Path]:
    """Anomalous test images, one a row: input, heatmap of each of `models` (heading → class → model), and truth.

    As in the paper's Figures 6, 9, 10, 11 and 14: three images of a class, or one of each of up to seven classes, and
    the contrast curve of each map is its own. `tasks` name the classes; images are at even ranks of the score.
    """
    rows: dict[str, list[figures.Pixels]] = {}
    headings: list[str] = []
    for task in tasks[:CLASSES_SHOWN]:
        split = open_split(task.job)
        count = SAMPLES if len(tasks) <= FEW_CLASSES else 1
        for index in figures.at_ranks(results[task]["scores"], split.labels, count):
            image = split.test[torch.tensor([index])]
            shown = {"input": figures.inputs(task.job.recipe, image)}
            shown |= {heading: figures.heat(of_class[task.job.normal], image) for heading, of_class in models.items()}
            shown |= figures.truth(split, [index], task.job.recipe.size)
            headings = list(shown)
            rows[f"{task.job.normal}: {split.kinds[index]}"[:LABEL] + f" {index}"] = [one[0] for one in shown.values()]
    if not rows:
        return []
    figures.sheet(path, rows, headings)
    return [path]
