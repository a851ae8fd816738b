"""The paper's experiments, one module each: what it runs, and the tables and figures that come of it.

A module here registers itself in `EXPERIMENTS`; `fcdd reproduce` and its help read the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fcdd.paper import tables
from fcdd.paper.tables import Table
from fcdd.registry import Registry

if TYPE_CHECKING:
    from fcdd.paper.grid import Ledger, Task
    from fcdd.paper.options import Options


@dataclass(frozen=True)
class Report:
    """The tables of an experiment and its figures, PNG files beside which a PDF of the same name lies."""

    tables: Sequence[Table]
    figures: Sequence[Path] = field(default_factory=tuple)


@dataclass(frozen=True)
class Experiment:
    """`plan` makes the grid of tasks, `report` the tables and figures of those that are done."""

    title: str
    plan: Callable[[Options], list[Task]]
    report: Callable[[Options, Ledger, Sequence[Task]], Report]


EXPERIMENTS: Registry[Experiment] = Registry("experiment", __name__)


def publish(name: str, options: Options, ledger: Ledger, tasks: Sequence[Task]) -> tuple[Report, list[Path]]:
    """Write the tables and figures of what is done so far; the report and the files."""
    experiment = EXPERIMENTS[name]
    report = experiment.report(options, ledger, tasks)
    shown = [path.name for path in report.figures]
    files = tables.write(report.tables, options.output, name, experiment.title, shown)
    return report, [*files, *report.figures, *(path.with_suffix(".pdf") for path in report.figures)]
