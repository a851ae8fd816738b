"""What a table says of itself: budget, data actually used, seeds, start weights; gathered from the result files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fcdd.paper import published
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.reproduce.options import Options
from fcdd.paper.tables import Cell
from fcdd.training import recipe as recipes
from fcdd.training.methods import METHODS

Results = Mapping[Task, dict[str, Any]]  # of the tasks that are done


def gather(ledger: Ledger, tasks: Sequence[Task]) -> Results:
    return {task: result for task in tasks if (result := ledger.result(task)) is not None}


def cell(results: Results, table: str, row: str, column: str, metric: str, **only: object) -> Cell:
    """The measured figures of class `row` in `column`, over seeds, beside the published one of `table`."""
    measured = {
        task.job.seed: float(result[metric])
        for task, result in results.items()
        if task.job.normal == row and task.column == column
        if all(getattr(task.job.recipe, name) == value for name, value in only.items())
    }
    return Cell(measured, published.figure(table, column, row))


def facts(options: Options, results: Results, tasks: Sequence[Task]) -> list[str]:
    """The lines under a table."""
    if not results:
        return ["Nothing has run yet: all figures are the published ones."]
    seeds = sorted({task.job.seed for task in results})
    budget = "" if options.epochs else f" {options.budget}"
    told = [
        f"Budget{budget}: {_epochs(results)}; {len(seeds)} seed{'s' if len(seeds) > 1 else ''} "
        f"({', '.join(map(str, seeds))}) where the paper has five; {len(results)} of {len(tasks)} jobs done.",
        f"Protocol: {'the paper' if options.protocol == 'paper' else 'the authors’ code'}.",
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
    """Whether the paper starts this model from ImageNet weights."""
    return task.job.recipe.pretrained and METHODS[task.job.recipe.method].pretrainable


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
