"""What an experiment comes to: tables and figures in files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fcdd.paper.grid import Ledger, Task
from fcdd.paper.reproduce.options import Options
from fcdd.paper.tables import Table


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
