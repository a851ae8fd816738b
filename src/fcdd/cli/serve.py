"""`fcdd serve`: exported models behind HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fcdd.cli.common import Threads, app, reported
from fcdd.errors import FcddError
from fcdd.serve.limits import MEGA, Limits

MOST_MILLIONS = 1000  # bytes of a body, pixels of an image


@app.command()
def serve(
    models: Annotated[list[Path], typer.Argument(help="Model files that `fcdd export` wrote.")],
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
    threads: Threads = 0,
    proxy: Annotated[
        list[str] | None, typer.Option(help="Address of a proxy that is believed who its clients are; repeatable.")
    ] = None,
) -> None:
    """Serve exported models over HTTP, with a page to try them on."""
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
        server.run(models, host, port, token, limits, threads, log_level, proxy or [])


def _millions(option: str, value: float) -> int:
    """So many million; FcddError where it is no number of them or more than a process can hold."""
    if not 1 / MEGA <= value <= MOST_MILLIONS:
        raise FcddError(f"{option} {value:g}: must be between 0.000001 and {MOST_MILLIONS}")
    return int(value * MEGA)
