"""`fcdd serve`: exported models behind HTTP."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fcdd.cli.common import FitOption, Threads, app, command, reported
from fcdd.errors import FcddError
from fcdd.serve.limits import MEGA, Limits

MOST_MILLIONS = 1000  # bytes of a body, pixels of an image


@app.command()
def serve(
    models: Annotated[
        list[Path], typer.Argument(help="Model files of `fcdd export`; those of `fcdd train` are exported first.")
    ],
    host: Annotated[str, typer.Option(help="Address to listen on; others than loopback need a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free one.")] = 8000,
    token: Annotated[
        str | None, typer.Option(envvar="FCDD_TOKEN", show_envvar=True, help="What clients must send to be answered.")
    ] = None,
    queue: Annotated[int, typer.Option(help="Images in the server; what is beyond gets 503.")] = Limits.queue,
    batch: Annotated[int, typer.Option(help="Images that run through the network together.")] = Limits.batch,
    max_body: Annotated[float, typer.Option(help="Megabytes of a request.")] = Limits.body / MEGA,
    max_pixels: Annotated[float, typer.Option(help="Megapixels of an image.")] = Limits.pixels / MEGA,
    timeout: Annotated[float, typer.Option(help="Seconds to answer in.")] = Limits.seconds,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    fit: FitOption = None,
    threads: Threads = 0,
    proxy: Annotated[
        list[str] | None, typer.Option(help="Address of a proxy that is believed who its clients are; repeatable.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print address and models as JSON when it is ready.")] = False,
) -> None:
    """Serve models over HTTP, with a page to try them on."""
    with reported():
        try:
            from fcdd.serve import server
        except ModuleNotFoundError as error:
            raise FcddError(f"{error.name} is not installed: pip install 'fcdd[serve]'") from None
        if log_level not in ("debug", "info", "warning", "error"):
            raise FcddError(f"--log-level {log_level}: choose debug, info, warning or error")
        limits = Limits(
            queue=queue,
            batch=batch,
            images=min(Limits.images, queue),
            body=_millions("--max-body", max_body),
            received=max(Limits.received, _millions("--max-body", max_body)),
            pixels=_millions("--max-pixels", max_pixels),
            seconds=timeout,
        )

        def ready(address: str, names: Sequence[str]) -> None:
            said = f"open {address} in a browser ({', '.join(names)}); stop with Ctrl-C"
            typer.echo(json.dumps({"address": address, "models": list(names)}) if json_ else said)
            sys.stdout.flush()

        with tempfile.TemporaryDirectory(prefix="fcdd-") as folder:
            exported = [_exported(model, Path(folder) / str(place), threads) for place, model in enumerate(models)]
            server.run(exported, host, port, token, limits, threads, log_level, proxy or [], ready, fit)


def _exported(model: Path, folder: Path, threads: int) -> Path:
    """The model, or what `fcdd export` makes of it in `folder`: in a process of its own, because it needs torch."""
    if model.suffix != ".safetensors":
        return model
    target = folder / f"{model.stem}.onnx"
    typer.echo(f"exporting {model}; `{command('export', model)}` once spares this at every start", err=True)
    process = [sys.executable, "-m", "fcdd.cli", "export", str(model), "-o", str(target), "--json"]
    process += ["--threads", str(threads)]
    done = subprocess.run(process, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1].removeprefix("error: ")
        raise FcddError(f"{model}: could not be exported. {reason}")
    return target


def _millions(option: str, value: float) -> int:
    """So many million; FcddError where it is no number of them or more than a process can hold."""
    if not 1 / MEGA <= value <= MOST_MILLIONS:
        raise FcddError(f"{option} {value:g}: must be between 0.000001 and {MOST_MILLIONS}")
    return int(value * MEGA)
