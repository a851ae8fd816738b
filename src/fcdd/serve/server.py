"""From model files to a server that runs until it is told to stop, and then finishes what it took."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from fcdd.detector.runtime import Runtime
from fcdd.errors import FcddError
from fcdd.framing import Fit
from fcdd.interrupt import stop_on_signal
from fcdd.serve import app as application
from fcdd.serve import logs
from fcdd.serve.connections import BURST, STOPPING_SECONDS, limited
from fcdd.serve.guard import check_door, is_address
from fcdd.serve.limits import Limits

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

OTHER_FILES = 128  # pipes, models, libraries
HEADER_BYTES = 16_384
MOST_THREADS = 256
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def load(paths: Sequence[Path], threads: int) -> dict[str, Runtime]:
    """The models by their file names without suffix."""
    names = [path.stem for path in paths]
    for path, name in zip(paths, names, strict=True):
        if not NAME.fullmatch(name):
            raise FcddError(f"{path}: its name becomes part of addresses; use letters, digits, dots, - and _ only")
        if names.count(name) > 1:
            raise FcddError(f"{path}: another model is also named {name}; rename one of them")
    return {name: Runtime(path, threads=threads) for name, path in zip(names, paths, strict=True)}


def listen(host: str, port: int) -> socket.socket:
    """A bound socket, so that a port in use is told before models are loaded; port 0 takes a free one."""
    if port not in range(65_536):
        raise FcddError(f"--port {port}: must be between 0 and 65535")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except (OSError, UnicodeError) as error:
        raise FcddError(f"--host {host} --port {port}: {error}; choose another") from None
    return listener


def prepared(app: FastAPI, limits: Limits, proxies: Sequence[str] = ()) -> uvicorn.Server:
    """A server that, told to stop, takes no more requests and waits for those it has as long as they may take.

    It believes what the headers of `proxies` (addresses) say of a client, and of nobody else.
    """
    config = uvicorn.Config(
        app,
        http=limited(limits),
        ws="none",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        backlog=BURST,
        h11_max_incomplete_event_size=HEADER_BYTES,
        timeout_keep_alive=int(limits.idle_seconds),
        timeout_graceful_shutdown=int(STOPPING_SECONDS + limits.seconds) + 1,
    )
    return uvicorn.Server(config)


def room_for(connections: int) -> None:
    """As many open files as the connections need, where the system lets the process have them."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + 2 * BURST + OTHER_FILES
    if soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            raise FcddError(f"{needed} open files are needed and {hard} allowed; raise the limit (ulimit -n {needed})")
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def run(
    paths: Sequence[Path],
    host: str,
    port: int,
    token: str | None,
    limits: Limits,
    threads: int,
    log_level: str,
    proxies: Sequence[str] = (),
    ready: Callable[[str, Sequence[str]], None] = lambda address, models: None,
    fit: Fit | None = None,
) -> None:
    """Serve until SIGTERM or Ctrl-C; what was taken until then is answered.

    `ready` is called with the address and the models' names when the models are loaded.
    """
    check_door(host, token)
    if threads not in range(MOST_THREADS + 1):
        raise FcddError(f"--threads {threads}: must be between 0, for all cores, and {MOST_THREADS}")
    for proxy in proxies:
        if not is_address(proxy):
            raise FcddError(f"--proxy {proxy}: give an IP address, or a network such as 10.0.0.0/8")
    room_for(limits.connections)
    listener = listen(host, port)
    cores = threads or os.cpu_count() or 1
    # A batch a core beats a batch on all cores: decoding and drawing of one run beside the network of the other.
    models = load(paths, threads=1)
    for model in models.values():
        model.framing = fit or model.framing
    server = prepared(application.create(models, limits, token, workers=cores), limits, proxies)
    address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
    with logs.written_to(sys.stderr, log_level):
        listener.listen(BURST)  # whoever comes as soon as the address is told waits a moment, and is not refused
        ready(address, list(models))
        logs.log("serving", address=address, models=list(models), token=token is not None)
        with stop_on_signal():  # uvicorn raises the signal again when it is done; here that is no failure
            server.run(sockets=[listener])
        logs.log("stopped")
