"""Clients that try to bring a server down, each kind at a pace of its own. `benchmarks/attack.py` runs them."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import requests

from tests.serve import fuzzing, hostile

TIMEOUT = 60.0
HELD = 150  # slow connections at a time


@dataclass
class Tally:
    """What all attackers saw together."""

    sent: Counter[str] = field(default_factory=Counter)  # requests by kind
    statuses: Counter[int] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)  # answers that are not what the schema says
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, kind: str, status: int | None = None) -> None:
        with self.lock:
            self.sent[kind] += 1
            if status is not None:
                self.statuses[status] += 1


@dataclass(frozen=True)
class Target:
    """A server on this machine, and an image that it judges."""

    port: int
    model: str
    image: bytes
    tally: Tally

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def path(self) -> str:
        return f"/v1/models/{self.model}/predict"

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), 10)

    def post(self, kind: str, content: bytes, content_type: str = hostile.RAW, path: str = "") -> None:
        status = None
        with suppress(requests.RequestException):
            status = requests.post(
                self.address + self.path + path, data=content, headers={"Content-Type": content_type}, timeout=TIMEOUT
            ).status_code
        self.tally.count(kind, status)


def from_schema(target: Target) -> Iterator[None]:
    """Requests made up from the server's schema; every answer must be what the schema says."""
    while True:
        try:
            for label, statuses in fuzzing.from_schema(target.address, target.model, 10, fresh=True).items():
                for status, count in statuses.items():
                    for _ in range(count):
                        target.tally.count(f"schema: {label}", status)
        except requests.RequestException:
            pass
        except Exception as error:  # schemathesis tells by many kinds of errors what is wrong with an answer
            if "Connection failed" not in str(error):  # no answer, where the server has just been told to stop
                target.tally.broken.append(str(error)[:2000])
        yield


def damaged(target: Target) -> Iterator[None]:
    """Images of every format, cut, changed and mixed."""
    for seed in itertools.count():
        for _, content in fuzzing.damaged(8, seed):
            target.post("damaged image", content, path="?heatmap=png")
            yield


def forms(target: Target) -> Iterator[None]:
    """Forms with bytes changed, cut or repeated anywhere."""
    generator = np.random.default_rng(0)
    whole = hostile.form(target.image)
    for number in itertools.count():
        body = bytearray(whole)
        for at in generator.integers(0, 160, generator.integers(1, 5)):
            body[at] = generator.integers(0, 256)
        if number % 3 == 1:
            del body[generator.integers(1, len(body)) :]
        elif number % 3 == 2:
            body += body[: generator.integers(1, len(body))]
        charset = ("", "; charset=punycode", "; charset=utf-7")[number % 3]
        path = "/batch" if number % 2 else ""
        target.post("damaged form", bytes(body), f"multipart/form-data; boundary=x{charset}", path)
        yield


def hostile_bodies(target: Target) -> Iterator[None]:
    """Images and forms that are made to cost far more than they weigh."""
    made = {name: (kind, make()) for name, (kind, make) in hostile.BODIES.items()}
    for name, (kind, content) in itertools.cycle(made.items()):
        target.post(f"hostile: {name}", content, kind)
        yield


def slow(target: Target) -> Iterator[None]:
    """Half a header, half a body, and bodies in chunks of one byte, held open as long as the server lets them."""
    head = f"POST {target.path} HTTP/1.1\r\nHost: localhost\r\n"
    starts = (
        head,
        f"{head}Content-Length: 30000000\r\n\r\n" + "x" * 1000,
        f"{head}Transfer-Encoding: chunked\r\n\r\n" + "1\r\nx\r\n" * 2000,
    )
    held: deque[socket.socket] = deque()
    for start in itertools.cycle(starts):
        with suppress(OSError):
            client = target.connect()
            client.sendall(start.encode())
            held.append(client)
        target.tally.count("slow")
        if len(held) > HELD:
            held.popleft().close()
        with suppress(OSError, IndexError):
            held[-(len(held) // 2) - 1].sendall(b"x")
        yield


def disconnects(target: Target) -> Iterator[None]:
    """A whole request, and then nobody who waits for the answer."""
    content = target.image
    head = f"POST {target.path}?heatmap=png HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n\r\n"
    while True:
        with suppress(OSError), target.connect() as client:
            client.sendall(head.encode() + content)
        target.tally.count("disconnect")
        yield


def garbage(target: Target) -> Iterator[None]:
    """Bytes that are no HTTP, or hardly."""
    generator = np.random.default_rng(0)
    for number in itertools.count():
        noise = generator.bytes(int(generator.integers(1, 2000)))
        method = generator.choice(["GET", "POST", "PUT", "HEAD", "OPTIONS", "BREW"])
        line = f"{method} /v1/models/{number} HTTP/1.{number % 3}\r\nHost: localhost\r\nX: ".encode()
        with suppress(OSError), target.connect() as client:
            client.settimeout(0.3)  # noise may look like half a header, which is waited for
            client.sendall(noise if number % 2 else line + noise + b"\r\n\r\n")
            answer = client.recv(64)
            if answer.startswith(b"HTTP/1.1 ") and answer[9:12].isdigit():
                target.tally.count("garbage", int(answer[9:12]))
                yield
                continue
        target.tally.count("garbage")
        yield


# Kind → requests a second that it tries to keep, in threads of its own.
KINDS: dict[Callable[[Target], Iterator[None]], tuple[float, int]] = {
    from_schema: (10, 1),
    damaged: (16, 2),
    forms: (12, 2),
    hostile_bodies: (0.3, 1),
    slow: (12, 1),
    disconnects: (20, 1),
    garbage: (14, 2),
}


def run(target: Target, until: float) -> list[threading.Thread]:
    """Start all attackers; they end by themselves at `until` (monotonic seconds)."""

    def attack(kind: Callable[[Target], Iterator[None]], pause: float) -> None:
        due = time.monotonic()
        for _ in kind(target):
            due = max(due + pause, time.monotonic() - 1)  # what was missed for long is not made up for
            if due > until or time.monotonic() > until:
                return
            time.sleep(max(due - time.monotonic(), 0))

    threads = [
        threading.Thread(target=attack, args=(kind, count / rate), name=kind.__name__, daemon=True)
        for kind, (rate, count) in KINDS.items()
        for _ in range(count)
    ]
    for thread in threads:
        thread.start()
    return threads
