"""A Ray cluster for as long as it is needed: one that is running, or one of our own on this machine's loopback."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib.util import find_spec
from typing import Any

from fcdd.errors import FcddError

LOCAL = "local"
PATIENCE = 5.0  # seconds
STORE_BYTES = 128 * 2**20  # of a cluster of our own: tasks and their outcomes pass through it, never images


def require() -> None:
    """FcddError where the extra is not installed. Imports nothing: what `connected` sets, Ray reads when imported."""
    if not all(find_spec(name) for name in ("ray", "pyarrow")):
        raise FcddError("--on ray needs Ray: pip install 'fcdd[cluster]'")


@contextmanager
def connected(address: str = "") -> Iterator[None]:
    """Be connected to the cluster at `address` (default: RAY_ADDRESS, else a new one on this machine).

    Raises:
        FcddError: Ray is not installed, or there is no cluster at the address.
    """
    require()
    address = address or os.environ.get("RAY_ADDRESS") or LOCAL
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    # No reports to its makers, and no lines of its C++ core among our own.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    if address == LOCAL:
        # Its name tells where Ray does this by default; on Linux it would listen on every interface.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        options |= {"include_dashboard": False, "object_store_memory": STORE_BYTES}
    import ray

    try:
        _knock(address)
        ray.init(address, **options)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise FcddError(
            f"no Ray cluster at {address} ({reason}). Start one there: ray start --head; "
            "where it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
        ) from None
    with redirect_stdout(sys.stderr):  # Ray tells of dead workers on the standard output, which is for answers
        try:
            yield
        finally:
            ray.shutdown()


def _knock(address: str) -> None:
    """OSError where nobody answers at HOST:PORT: Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=PATIENCE).close()
