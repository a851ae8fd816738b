"""Confetti noise on MVTec-AD's good images: the paper's Figure 7. Nothing is trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from fcdd.anomalies.confetti import confetti
from fcdd.data import DATASETS, Problem
from fcdd.paper import figures
from fcdd.paper.experiments import EXPERIMENTS, Experiment
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.options import Options
from fcdd.paper.results import Results
from fcdd.paper.tables import Table
from fcdd.seeds import generator_of
from fcdd.training import recipe as recipes

SHOWN = 7  # classes, at most


def plan(options: Options) -> list[Task]:
    """No job: the noise is drawn on the images themselves."""
    options.check_classes(["mvtec"])
    return []


def tables(options: Options, results: Results, tasks: Sequence[Task]) -> list[Table]:
    """None: the figure has no numbers."""
    return []


def sheets(options: Options, ledger: Ledger, results: Results) -> list[Path]:
    """One column a class: a good training image, the same with confetti as training sees it, and what it changed."""
    recipe = recipes.load("mvtec")
    rows: dict[str, list[figures.Pixels]] = {"good": [], "confetti": [], "changed": []}
    classes = options.classes_of("mvtec")[:SHOWN]
    for normal in classes:
        split = DATASETS["mvtec"].read(Problem(options.data, normal, recipe.stored))
        good = split.nominal[torch.tensor([0])]
        noisy, mask = confetti(good.float() / 255, generator_of(0, "confetti", normal))
        rows["good"] += figures.inputs(recipe, good)
        rows["confetti"] += figures.inputs(recipe, (noisy * 255).round().byte())
        rows["changed"] += [(mask[0, 0] * 255).numpy()]
    path = options.output / "confetti.png"
    figures.sheet(path, rows, classes)
    return [path]


EXPERIMENTS.register("confetti")(Experiment("Confetti noise on good images of MVTec-AD", plan, tables, sheets))
