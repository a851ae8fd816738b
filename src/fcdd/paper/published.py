"""The paper's figures, each with its table in the paper."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

MEAN = "mean"  # the row that holds the paper's mean over all classes
DEVIATION = "standard deviation"  # the row of the standard deviation over all classes


@dataclass(frozen=True)
class Figure:
    """One published figure, mostly an AUC in [0, 1], and the table of the paper it is from."""

    value: float
    source: str


def figure(table: str, column: str, row: str) -> Figure | None:
    """The paper's figure, or None where the paper has none."""
    entry = _tables().get(table, {})
    values = dict(zip(entry.get("rows", ()), entry.get("columns", {}).get(column, ()), strict=False))
    for name, extra in ((MEAN, "means"), (DEVIATION, "deviations")):
        values |= {name: entry[extra][column]} if column in entry.get(extra, {}) else {}
    return Figure(values[row], entry["source"]) if row in values else None


def columns(table: str) -> list[str]:
    """The methods of a published table with class-wise figures, in the paper's order."""
    return list(_tables().get(table, {}).get("columns", {}))


def rows(table: str) -> list[str]:
    """The classes of a published table, in the paper's order, without the mean."""
    return [row for row in _tables().get(table, {}).get("rows", ()) if row != MEAN]


@lru_cache(maxsize=1)
def _tables() -> dict[str, Any]:
    return tomllib.loads((resources.files("fcdd.paper") / "published.toml").read_text())
