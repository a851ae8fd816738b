"""The paper's experiments, one module each: what it runs, and the tables and figures that come of it.

A module here registers itself in `EXPERIMENTS`; `fcdd reproduce` and its help read the registry. Tables need only
results, so that they can be made again from those that are kept (fcdd.paper.kept); figures need the models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fcdd.paper import tables
from fcdd.paper.results import Results, gather
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
    """`plan` makes the grid of tasks, `tables` and `figures` what comes of those that are done.

    `tables` takes the results of done tasks and all tasks; `figures` takes the models of done tasks from the ledger.
    """

    title: str
    plan: Callable[[Options], list[Task]]
    tables: Callable[[Options, Results, Sequence[Task]], list[Table]]
    figures: Callable[[Options, Ledger, Results], list[Path]] = lambda *_: []


EXPERIMENTS: Registry[Experiment] = Registry("experiment", __name__)


def publish(name: str, options: Options, ledger: Ledger, tasks: Sequence[Task]) -> tuple[Report, list[Path]]:
    """Write the tables and figures of what is done so far; the report and the files."""
    experiment = EXPERIMENTS[name]
    results = gather(ledger, tasks)
    report = Report(experiment.tables(options, results, tasks), experiment.figures(options, ledger, results))
    shown = [path.name for path in report.figures]
    files = tables.write(report.tables, options.output, name, experiment.title, shown)
    return report, [*files, *report.figures, *(path.with_suffix(".pdf") for path in report.figures)]
