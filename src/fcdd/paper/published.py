"""The paper's figures, with where each was read."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

MEAN = "mean"  # the row that holds the paper's mean over all classes


@dataclass(frozen=True)
class Figure:
    """One published AUC in [0, 1]; not `confirmed` means from memory and not checked against the paper."""

    value: float
    confirmed: bool
    source: str


def figure(table: str, column: str, row: str) -> Figure | None:
    """The paper's figure, or None where this project does not know it."""
    entry = _tables().get(table, {})
    values = dict(zip(entry.get("rows", ()), entry.get("columns", {}).get(column, ()), strict=False))
    return Figure(values[row], row not in entry.get("memory", ()), entry["source"]) if row in values else None


def columns(table: str) -> list[str]:
    """The methods of a published table, in the paper's order."""
    return list(_tables().get(table, {}).get("columns", {}))


def rows(table: str) -> list[str]:
    """The classes of a published table, in the paper's order, without the mean."""
    return [row for row in _tables().get(table, {}).get("rows", ()) if row != MEAN]


@lru_cache(maxsize=1)
def _tables() -> dict[str, Any]:
    return tomllib.loads((resources.files("fcdd.paper") / "published.toml").read_text())
