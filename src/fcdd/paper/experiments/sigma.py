"""Appendix B: σ of the upsampling on MVTec-AD. Each σ reads the same trained models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fcdd.paper.experiments import EXPERIMENTS, Experiment, Report
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.options import Options
from fcdd.paper.probes import SIGMAS
from fcdd.paper.results import (
    PIXEL_METRICS,
    compared_metric,
    facts,
    gather,
    model_of,
    parameter_curve,
    parameter_table,
    sheet_of_models,
)


def plan(options: Options) -> list[Task]:
    """FCDD's models of Table 2, each with a look at all widths."""
    options.check_classes(["mvtec"])
    changes = {"objective": "authors"} if options.authors else {}
    return options.tasks("mvtec", options.classes_of("mvtec"), "fcdd", changes, probe="widths")


def report(options: Options, ledger: Ledger, tasks: Sequence[Task]) -> Report:
    """Pixel AUC by σ, the curve of the means, and the same images under each σ."""
    results = gather(ledger, tasks)
    metric = compared_metric(options)

    def measure(row: str, normal: str) -> dict[int, float]:
        return {task.job.seed: r["widths"][metric][row] for task, r in results.items() if task.job.normal == normal}

    title = f"σ of the upsampling: pixel AUC on MVTec-AD, {PIXEL_METRICS[metric]}, one model per class and seed"
    rows = [str(width) for width in SIGMAS]
    table = parameter_table(title, "σ", tasks, measure, "sigma", facts(options, results, tasks), rows)
    shown = parameter_curve(options.output / "sigma.png", table, "σ in px", "pixel AUC")
    if first := next(iter(results), None):
        model = model_of(ledger, first)
        models = {f"σ {width}": replace(model, recipe=replace(model.recipe, sigma=float(width))) for width in SIGMAS}
        shown += sheet_of_models(options.output / "sigma-heatmaps.png", first, models, results[first]["scores"])
    return Report([table], shown)


EXPERIMENTS.register("sigma")(Experiment("σ of the upsampling on MVTec-AD", plan, report))
