"""What all commands share: the application, its answers and its exit codes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

# Before numpy loads: its matrix products here are small, and threads of its own would fight with ours.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import fcdd
from fcdd.errors import FcddError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Anomaly detection whose score is its explanation (FCDD).",
)

SOMETHING_WRONG = 1
BAD_INPUT = 2
STOPPED = 130

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
SkipBad = Annotated[bool, typer.Option(help="Leave out files that cannot be read.")]
Threads = Annotated[int, typer.Option(help="CPU threads; 0 takes all cores.")]


@contextmanager
def reported(resume: str = "") -> Iterator[None]:
    """Bad input ends with its message and code 2, a stop on request with code 130; a bug keeps its traceback."""
    from fcdd.interrupt import Interrupted

    try:
        yield
    except Interrupted as stop:
        typer.echo(f"{stop}. {resume}".strip(), err=True)
        raise typer.Exit(STOPPED) from None
    except FcddError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(BAD_INPUT) from None


def set_threads(count: int) -> None:
    import torch

    if count:
        torch.set_num_threads(count)


def tell(values: dict[str, Any], as_json: bool, *lines: str) -> None:
    """The answer of a command: one JSON object for scripts, or lines for people."""
    typer.echo(json.dumps(values) if as_json else "\n".join(lines))


@app.callback(invoke_without_command=True)
def main(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        typer.echo(fcdd.__version__)
        raise typer.Exit


def figure_lines(told: dict[str, Any]) -> list[str]:
    """Lines of an evaluation, for people."""
    lines = []
    if told["image_auroc"] is not None:
        interval = f"95 % interval {told['image_auroc_low']:.3f} to {told['image_auroc_high']:.3f}"
        lines.append(f"image AUROC  {told['image_auroc']:.4f}   ({interval})")
    if told["pixel_auroc"] is not None:
        lines.append(f"pixel AUROC  {told['pixel_auroc']:.4f}   AUPRO {told['aupro']:.4f}")
    for kind, counts in told["verdicts"].items():
        lines.append(f"  {kind:20} " + "  ".join(f"{counts.get(v, 0):4} {v}" for v in ("OK", "REVIEW", "NG")))
    lines.append(f"{told['images']} images, {told['images_per_second']:.1f} images/s")
    return lines
