"""Appendix B: σ of the upsampling on MVTec-AD. Each σ reads the same trained models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fcdd.paper.experiments import EXPERIMENTS, Experiment
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.options import Options
from fcdd.paper.probes import SIGMAS
from fcdd.paper.results import (
    PIXEL_METRICS,
    Results,
    compared_metric,
    facts,
    first_of_classes,
    model_of,
    parameter_curve,
    parameter_table,
    value_sheet,
)
from fcdd.paper.tables import Table


def plan(options: Options) -> list[Task]:
    """FCDD's models of Table 2, each with a look at all widths."""
    options.check_classes(["mvtec"])
    changes = {"objective": "authors"} if options.authors else {}
    return options.tasks("mvtec", options.classes_of("mvtec"), "fcdd", changes, probe="widths")


def tables(options: Options, results: Results, tasks: Sequence[Task]) -> list[Table]:
    """Pixel AUC by σ."""
    metric = compared_metric(options)

    def measure(row: str, normal: str) -> dict[int, float]:
        return {task.job.seed: r["widths"][metric][row] for task, r in results.items() if task.job.normal == normal}

    title = f"σ of the upsampling: pixel AUC on MVTec-AD, {PIXEL_METRICS[metric]}, one model per class and seed"
    rows = [str(width) for width in SIGMAS]
    return [parameter_table(title, "σ", tasks, measure, "sigma", facts(options, results, tasks), rows)]


def figures(options: Options, ledger: Ledger, results: Results) -> list[Path]:
    """The curve of the means, and one anomalous image a row under each σ (the paper's Figure 11)."""
    if not results:
        return []
    (table,) = tables(options, results, list(results))
    shown = parameter_curve(options.output / "sigma.png", table, "σ in px", "pixel AUC")
    first = first_of_classes(results)
    models = {task.job.normal: model_of(ledger, task) for task in first}
    by_width = {
        f"sigma {width}": {  # the sheet's font has no σ
            normal: replace(model, recipe=replace(model.recipe, sigma=float(width))) for normal, model in models.items()
        }
        for width in SIGMAS
    }
    return shown + value_sheet(options.output / "sigma-heatmaps.png", first, results, by_width)


EXPERIMENTS.register("sigma")(Experiment("σ of the upsampling on MVTec-AD", plan, tables, figures))
