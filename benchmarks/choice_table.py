"""The table of `choice.py`: every variant on synthetic defects and on test images, and what a choice would give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcdd.detector.settings import Settings

INTRODUCTION = """# How the detector's recipe was chosen

Made by `python benchmarks/choice.py --data MVTEC`. Each row changes one value of the recipe that the choice started
from (whitening with shrink 0.03); figures are means over the classes ({classes}) of image AUROC / pixel
AUROC, one seed. The start itself came from comparisons on test images; the synthetic column knows nothing of those.

- **Synthetic**: a quarter of the good training images is held out from the fit; 30 of them get scratches, stains,
  pasted patches and foreign texture (`fcdd.anomalies`). No test image and no test label is looked at. This column
  decides, by the sum of both figures: its first row became the recipe.
- **Test** stands beside it to show what the decision is worth.
- **Left out**: for each class, the row that is best on the *test* images of the other classes, and what that row gives
  on the class left out: what an unseen class may expect if the choice had been made by test images.
"""

Row = tuple[str, str, str]  # variant, share of the strongest cells, sigma


def write_table(runs: Sequence[Mapping[str, Any]], output: Path) -> None:
    """Write choice.md from the runs of all classes; variants that lack a class are left out."""
    classes = sorted({run["class"] for run in runs})
    figures = {name: _figures(runs, classes, name) for name in ("synthetic", "test")}
    rows = [row for row in figures["test"] if not np.isnan(figures["test"][row]).any()]
    default = ("start", str(Settings.top), str(Settings.sigma))
    text = [INTRODUCTION.format(classes=", ".join(classes)), "| changed | synthetic | test |", "|---|---|---|"]
    ranked = sorted(rows, key=lambda row: -figures["synthetic"][row].mean())
    for row in ranked:
        cells = [" / ".join(f"{v:.4f}" for v in figures[name][row].mean(0)) for name in ("synthetic", "test")]
        title = f"**{_title(row, default)}**" if row == default else _title(row, default)
        text.append(f"| {title} | {cells[0]} | {cells[1]} |")
    text += _left_out(rows, figures["test"], classes, default)
    (output / "choice.md").write_text("\n".join(text) + "\n")


def _figures(runs: Sequence[Mapping[str, Any]], classes: Sequence[str], name: str) -> dict[Row, NDArray[np.float64]]:
    """Image and pixel AUROC of every row, (classes, 2); NaN where a class is missing."""
    top, sigma = str(Settings.top), str(Settings.sigma)
    found: dict[Row, NDArray[np.float64]] = {}
    for run in runs:
        told, index = run[name], classes.index(run["class"])
        wanted = [(top, sigma)]
        if run["variant"] == "start":
            wanted += [(t, sigma) for t in told["image"] if t != top] + [(top, s) for s in told["pixel"] if s != sigma]
        for t, s in wanted:
            row = found.setdefault((run["variant"], t, s), np.full((len(classes), 2), np.nan))
            row[index] = np.mean(list(told["image"][t].values())), told["pixel"][s]
    return found


def _title(row: Row, default: Row) -> str:
    if row == default:
        return "nothing"
    names = ("", "top ", "sigma ")
    return ", ".join(f"{n}{v}" for n, v, d in zip(names, row, default, strict=True) if v != d)


def _left_out(
    rows: Sequence[Row], figures: Mapping[Row, NDArray[np.float64]], classes: Sequence[str], default: Row
) -> list[str]:
    lines = ["", "## Classes left out in turn", "", "| class left out | best on the others | on it | start on it |"]
    lines.append("|---|---|---|---|")
    gained = []
    for index, name in enumerate(classes):
        best = max(rows, key=lambda row: np.delete(figures[row], index, 0).mean())
        gained.append(figures[best][index])
        cells = [" / ".join(f"{v:.4f}" for v in figures[row][index]) for row in (best, default)]
        lines.append(f"| {name} | {_title(best, default)} | {cells[0]} | {cells[1]} |")
    means = [" / ".join(f"{v:.4f}" for v in m) for m in (np.mean(gained, 0), figures[default].mean(0))]
    return [*lines, f"| **mean** | | **{means[0]}** | **{means[1]}** |"]
