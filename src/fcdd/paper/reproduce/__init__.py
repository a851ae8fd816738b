"""The paper's experiments by name: what each runs, and the tables and figures that come of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fcdd.paper import tables
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.reproduce import benchmarks, curves, qualitative
from fcdd.paper.reproduce.options import Options
from fcdd.paper.reproduce.report import Experiment, Report

EXPERIMENTS = {
    "table1": Experiment(
        "Table 1 and its class-wise tables: AUC on Fashion-MNIST, CIFAR-10 and ImageNet-30",
        benchmarks.table1_plan,
        benchmarks.table1_report,
    ),
    "table2": Experiment(
        "Table 2: pixel AUC on MVTec-AD, unsupervised and semi-supervised",
        benchmarks.table2_plan,
        benchmarks.table2_report,
    ),
    "receptive-field": Experiment(
        "Receptive field: AUC on CIFAR-10, pixel AUC on MVTec-AD", curves.field_plan, curves.field_report
    ),
    "sigma": Experiment("σ of the upsampling on MVTec-AD", curves.sigma_plan, curves.sigma_report),
    "oe-size": Experiment("Number of Outlier Exposure samples", curves.size_plan, curves.size_report),
    "oe-source": Experiment(
        "Outlier Exposure by CIFAR-100 against EMNIST", benchmarks.source_plan, benchmarks.source_report
    ),
    "clever-hans": Experiment(
        "Clever Hans: horses of PASCAL VOC with a planted watermark", qualitative.hans_plan, qualitative.hans_report
    ),
    "heatmaps": Experiment(
        "Heatmaps of FCDD, gradients and autoencoder", qualitative.heatmaps_plan, qualitative.heatmaps_report
    ),
}


def publish(name: str, options: Options, ledger: Ledger, tasks: Sequence[Task]) -> tuple[Report, list[Path]]:
    """Write the tables and figures of what is done so far; the report and the files."""
    experiment = EXPERIMENTS[name]
    report = experiment.report(options, ledger, tasks)
    shown = [path.name for path in report.figures]
    files = tables.write(report.tables, options.output, name, experiment.title, shown)
    return report, [*files, *report.figures, *(path.with_suffix(".pdf") for path in report.figures)]
