"""A table of measured figures beside published ones, as Markdown, CSV, LaTeX and HTML."""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from fcdd.files import write_atomically
from fcdd.paper.published import MEAN, Figure

CLASS_LIMIT, MEAN_LIMIT = 0.02, 0.01  # figures below the paper's by more than these are flagged
NO_LIMIT = math.inf
FLAG, NOT_RUN = "⚠", "*"
LEGEND = (
    "Measured mean ± standard deviation over seeds; in brackets the published figure and the difference in points.",
    f"{FLAG} below the paper by more than {100 * CLASS_LIMIT:.0f} points for a class or "
    f"{100 * MEAN_LIMIT:.0f} for a mean.",
    f"{NOT_RUN} not run here: the published figure.",
)


@dataclass(frozen=True)
class Cell:
    """What one row and column hold: the figure of each seed that ran, and the paper's."""

    measured: Mapping[int, float] = field(default_factory=dict)  # seed → figure
    published: Figure | None = None
    limit: float = CLASS_LIMIT

    @property
    def mean(self) -> float | None:
        """Over seeds; None where nothing ran."""
        return statistics.fmean(self.measured.values()) if self.measured else None

    @property
    def deviation(self) -> float | None:
        """Standard deviation over seeds (n − 1); None with fewer than two."""
        return statistics.stdev(self.measured.values()) if len(self.measured) > 1 else None

    @property
    def difference(self) -> float | None:
        """Measured minus published; None where one of them is missing."""
        return self.mean - self.published.value if self.mean is not None and self.published else None

    @property
    def flagged(self) -> bool:
        """Whether the measured figure is worse than the paper's by more than the limit; better is no matter."""
        return self.difference is not None and -self.difference > self.limit

    def text(self) -> str:
        """`0.985 ± 0.002 (0.98, +0.5)`; `0.98*` where it was not run; a dash where nothing is known."""
        if self.mean is None:
            return f"{_published(self.published)}{NOT_RUN}" if self.published else "–"
        spread = f" ± {self.deviation:.3f}" if self.deviation is not None else ""
        if self.published is None or self.difference is None:
            return f"{self.mean:.3f}{spread}"
        flag = f" {FLAG}" if self.flagged else ""
        return f"{self.mean:.3f}{spread} ({_published(self.published)}, {100 * self.difference:+.1f}){flag}"


def _published(figure: Figure) -> str:
    """As the paper prints it: two digits, or four where it gives four."""
    return f"{figure.value:.2f}" if math.isclose(round(figure.value, 2), figure.value) else f"{figure.value:.4f}"


@dataclass(frozen=True)
class Table:
    """`rows` maps a row's name to one cell a column; `notes` say on what the figures rest."""

    title: str
    corner: str  # heading of the first column
    columns: Sequence[str]
    rows: dict[str, list[Cell]]
    notes: list[str] = field(default_factory=list)

    def legend(self) -> list[str]:
        """The lines of the legend that the cells make use of."""
        shown = " ".join(cell.text() for cells in self.rows.values() for cell in cells)
        measured = any(cell.measured for cells in self.rows.values() for cell in cells)
        return [line for line in LEGEND if (measured if line[0] == "M" else line[0] in shown)]


def mean_cell(cells: Sequence[Cell], paper: Figure | None) -> Cell:
    """The mean over classes, a figure a seed; only seeds that all classes have count.

    It is compared with the paper's mean where every class ran, else with the mean of the paper's figures of those
    classes that did.
    """
    ran = [cell for cell in cells if cell.measured]
    common = set[int].intersection(*(set(cell.measured) for cell in ran)) if ran else set()
    measured = {seed: statistics.fmean(cell.measured[seed] for cell in ran) for seed in sorted(common)}
    if ran and len(ran) < len(cells):
        known = [cell.published for cell in ran if cell.published]
        paper = Figure(statistics.fmean(f.value for f in known), known[0].source) if len(known) == len(ran) else None
    return Cell(measured, paper, MEAN_LIMIT)


def with_mean(table: Table, paper: Sequence[Figure | None]) -> Table:
    """The table with a last row for the mean over its rows; `paper` has the published mean of each column."""
    columns = [[cells[index] for cells in table.rows.values()] for index in range(len(table.columns))]
    means = [mean_cell(cells, figure) for cells, figure in zip(columns, paper, strict=True)]
    partial = [
        f"{name}: {sum(bool(cell.measured) for cell in cells)} of {len(cells)} classes ran; "
        "the mean is over them, and the published mean beside it over the same."
        for name, cells in zip(table.columns, columns, strict=True)
        if 0 < sum(bool(cell.measured) for cell in cells) < len(cells)
    ]
    rows = {**table.rows, MEAN: means}
    return Table(table.title, table.corner, table.columns, rows, [*table.notes, *partial])


def markdown(tables: Sequence[Table]) -> str:
    """The tables with their notes, one heading a table."""
    parts = []
    for table in tables:
        lines = [f"## {table.title}", ""]
        lines += [_line([table.corner, *table.columns]), _line(["---"] * (len(table.columns) + 1))]
        lines += [_line([name, *(cell.text() for cell in cells)]) for name, cells in table.rows.items()]
        lines += ["", *(f"- {note}" for note in [*table.notes, *table.legend()]), ""]
        parts.append("\n".join(lines))
    return "\n".join(parts)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def as_csv(tables: Sequence[Table]) -> str:
    """One line a cell, figures at full precision."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["table", "row", "column", "mean", "std", "seeds", "published", "difference", "flagged", "source"])
    for table in tables:
        for row, cells in table.rows.items():
            for column, cell in zip(table.columns, cells, strict=True):
                paper = cell.published
                told = paper.value if paper else None
                values = [cell.mean, cell.deviation, len(cell.measured), told, cell.difference, cell.flagged]
                writer.writerow([table.title, row, column, *values, paper.source if paper else ""])
    return text.getvalue()


_TEX = str.maketrans({"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "–": "--", "±": r"$\pm$", "σ": r"$\sigma$"})
_MARKS = str.maketrans({FLAG: r"$^{!}$", NOT_RUN: "$^*$", "−": "$-$", "…": r"\dots{}"})


def latex(tables: Sequence[Table]) -> str:
    """One `table` environment a table, with nothing but LaTeX itself."""
    parts = []
    for table in tables:
        head = " & ".join(map(_tex, [table.corner, *table.columns]))
        body = [" & ".join([_tex(name), *(_tex(cell.text()) for cell in cells)]) for name, cells in table.rows.items()]
        notes = " ".join(map(_tex, [*table.notes, *table.legend()]))
        parts += [
            r"\begin{table}",
            rf"\caption{{{_tex(table.title)}. {notes}}}",
            rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
            r"\hline",
            head + r" \\",
            r"\hline",
            *(line + r" \\" for line in body),
            r"\hline",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    return "\n".join(parts)


def _tex(text: str) -> str:
    return text.translate(_TEX).translate(_MARKS)


_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;color:#1e1e22}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}th,td{padding:.25rem .8rem;text-align:right;"
    "border-bottom:1px solid #ddd}th:first-child,td:first-child{text-align:left}.flag{background:#fdecea}"
    "div{overflow-x:auto}li{color:#555}img{max-width:100%}"
)


def html(tables: Sequence[Table], title: str, figures: Sequence[str] = ()) -> str:
    """A page of its own; `figures` are files beside it."""
    parts = [f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>']
    parts += ['<meta name="viewport" content="width=device-width">', f"<style>{_STYLE}</style><h1>{escape(title)}</h1>"]
    for table in tables:
        head = "".join(f"<th>{escape(name)}</th>" for name in [table.corner, *table.columns])
        rows = "".join(
            f"<tr><td>{escape(name)}</td>"
            + "".join(f"<td{' class=flag' if cell.flagged else ''}>{escape(cell.text())}</td>" for cell in cells)
            + "</tr>"
            for name, cells in table.rows.items()
        )
        notes = "".join(f"<li>{escape(note)}</li>" for note in [*table.notes, *table.legend()])
        parts.append(f"<h2>{escape(table.title)}</h2><div><table><tr>{head}</tr>{rows}</table></div><ul>{notes}</ul>")
    parts += [f'<p><img src="{escape(name)}" alt="{escape(name)}"></p>' for name in figures]
    return "\n".join([*parts, "</html>", ""])


def write(tables: Sequence[Table], folder: Path, name: str, title: str, figures: Sequence[str] = ()) -> list[Path]:
    """The tables as `name`.md, .csv, .tex and .html in `folder`; figures are shown by the Markdown and HTML.

    Without a table there is nothing for .csv and .tex.
    """
    images = "\n".join(f"![{figure}]({figure})" for figure in figures)
    contents = {
        "md": f"# {title}\n\n{markdown(tables)}" + (f"\n{images}\n" if images else ""),
        **({"csv": as_csv(tables), "tex": latex(tables)} if tables else {}),
        "html": html(tables, title, figures),
    }
    paths = [folder / f"{name}.{suffix}" for suffix in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        write_atomically(path, content.encode())
    return paths
