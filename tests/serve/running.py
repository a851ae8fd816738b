"""A real server on a loopback port, and requests that stop half way."""

from __future__ import annotations

import io
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from PIL import Image

from fcdd.detector.runtime import Runtime
from fcdd.serve import app, server
from fcdd.serve.limits import Limits

PATIENCE = 20.0  # seconds


@contextmanager
def running(
    models: Mapping[str, Runtime], limits: Limits | None = None, token: str | None = None, proxies: Sequence[str] = ()
) -> Iterator[str]:
    """The address of uvicorn with this application, in a thread."""
    limits = limits or Limits()
    listener = server.listen("127.0.0.1", 0)
    uvicorn = server.prepared(app.create(models, limits, token, workers=2), limits, proxies)
    thread = threading.Thread(target=uvicorn.run, kwargs={"sockets": [listener]})
    thread.start()
    deadline = time.monotonic() + PATIENCE
    while not uvicorn.started and thread.is_alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        uvicorn.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive()


def connected(address: str) -> socket.socket:
    host, _, port = address.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), PATIENCE)


def ended(connection: socket.socket) -> bytes:
    """What the server sends until it closes the connection."""
    received = b""
    try:
        while part := connection.recv(65536):
            received += part
    except ConnectionResetError:
        pass
    return received


class HalfRequest:
    """A POST whose body has come half way; `finish` sends the rest and returns what the server says."""

    def __init__(self, address: str, path: str, body: bytes) -> None:
        self._socket = connected(address)
        host = address.removeprefix("http://")
        self._rest = body[len(body) // 2 :]
        head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: image/png\r\nContent-Length: {len(body)}\r\n\r\n"
        self._socket.sendall(head.encode() + body[: len(body) // 2])

    def finish(self) -> bytes:
        self._socket.sendall(self._rest)
        return self.answer()

    def answer(self) -> bytes:
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._socket.recv(65536)
        head, _, body = received.partition(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"content-length"))
        while len(body) < length:
            body += self._socket.recv(65536)
        return head + b"\r\n\r\n" + body

    def displaced(self) -> bool:
        """Whether the server has already said that it does not wait for the rest."""
        self._socket.settimeout(0.2)
        try:
            return self._socket.recv(65536).startswith(b"HTTP/1.1 408")
        except TimeoutError:
            return False

    def close(self) -> None:
        self._socket.close()


def encoded(array: np.ndarray, kind: str = "PNG") -> bytes:
    stream = io.BytesIO()
    Image.fromarray(array).save(stream, kind)
    return stream.getvalue()
