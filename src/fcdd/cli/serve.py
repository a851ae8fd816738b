"""`fcdd serve`: exported models behind HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fcdd.cli.common import Threads, app, reported
from fcdd.errors import FcddError
from fcdd.serve.limits import MEGA, Limits


@app.command()
def serve(
    models: Annotated[list[Path], typer.Argument(help="Model files that `fcdd export` wrote.")],
    host: Annotated[str, typer.Option(help="Address to listen on; others than loopback need a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free one.")] = 8000,
    token: Annotated[
        str | None, typer.Option(envvar="FCDD_TOKEN", show_envvar=True, help="What clients must send to be answered.")
    ] = None,
    queue: Annotated[int, typer.Option(help="Pictures in the server; what is beyond gets 503.")] = Limits.queue,
    batch: Annotated[int, typer.Option(help="Pictures that run through the network together.")] = Limits.batch,
    max_body: Annotated[float, typer.Option(help="Megabytes of a request.")] = Limits.body / MEGA,
    max_pixels: Annotated[float, typer.Option(help="Megapixels of a picture.")] = Limits.pixels / MEGA,
    timeout: Annotated[float, typer.Option(help="Seconds to answer in.")] = Limits.seconds,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    threads: Threads = 0,
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
            pictures=min(Limits.pictures, queue),
            body=int(max_body * MEGA),
            pixels=int(max_pixels * MEGA),
            queue_pixels=max(Limits.queue_pixels, int(max_pixels * MEGA)),
            seconds=timeout,
        )
        server.run(models, host, port, token, limits, threads, log_level)
