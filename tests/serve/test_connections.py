"""Clients that open connections and do not use them as they should."""

from __future__ import annotations

import http.client
import socket
import time
from pathlib import Path

import pytest
import requests

from fcdd.detector.runtime import Runtime
from fcdd.serve import connections
from fcdd.serve.limits import Limits

from .running import HalfRequest, connected, ended, running

PREDICT = "/v1/models/plate/predict"
HALF = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-More: "


def sent_until_cut(client: socket.socket, part: bytes, pause: float) -> int:
    """How often `part` could be sent before the server closed the connection, at most 400 times."""
    for times in range(400):
        try:
            client.sendall(part)
        except OSError:
            return times
        time.sleep(pause)
    return 400


def test_half_a_header_is_not_waited_for(plate: Runtime) -> None:
    with running({"plate": plate}, Limits(header_seconds=0.3)) as address:
        for sent in (b"", HALF):
            begun = time.monotonic()
            client = connected(address)
            client.sendall(sent)
            assert ended(client) == b""
            assert 0.2 < time.monotonic() - begun < 5
        # A byte now and then does not help, neither on a new connection nor on a kept one.
        for first in (b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            client = connected(address)
            client.sendall(first)
            assert sent_until_cut(client, b"x", 0.05) < 100


def test_an_honest_connection_is_kept(plate: Runtime) -> None:
    with running({"plate": plate}, Limits(header_seconds=0.2)) as address:
        client = http.client.HTTPConnection(address.removeprefix("http://"), timeout=20)
        client.connect()
        first = client.sock
        for _ in range(3):
            client.request("GET", "/healthz")
            assert client.getresponse().read() == b"ok"
            time.sleep(0.4)
        assert client.sock is first


def test_connections_without_requests_give_way(plate: Runtime, defect: Path) -> None:
    with running({"plate": plate}, Limits(connections=20)) as address:
        upload = HalfRequest(address, PREDICT, defect.read_bytes())
        held = [connected(address) for _ in range(60)]
        for client in held:
            try:
                client.sendall(HALF)
            except OSError:
                continue
        begun = time.monotonic()
        assert requests.get(address + "/healthz", timeout=20).status_code == 200
        assert time.monotonic() - begun < 2
        assert upload.finish().startswith(b"HTTP/1.1 200")
        for client in held:
            client.close()


def test_where_all_connections_work_a_new_one_is_told_to_wait(
    plate: Runtime, defect: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "BURST", 0)
    with running({"plate": plate}, Limits(connections=2)) as address:
        working = [HalfRequest(address, PREDICT, defect.read_bytes()) for _ in range(2)]
        time.sleep(0.3)
        assert requests.get(address + "/healthz", timeout=20).status_code == 503
        for one in working:
            assert one.finish().startswith(b"HTTP/1.1 200")


def test_a_body_in_chunks_of_a_byte_does_not_hold_up_the_others(plate: Runtime) -> None:
    head = f"POST {PREDICT} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    with running({"plate": plate}) as address:
        attackers = [connected(address) for _ in range(4)]
        cut, longest = 0, 0.0
        for client in attackers:
            client.setblocking(True)
            client.sendall(head)
            try:
                for _ in range(40):
                    client.sendall(b"1\r\na\r\n" * 20_000)
                    begun = time.monotonic()
                    requests.get(address + "/healthz", timeout=20)
                    longest = max(longest, time.monotonic() - begun)
            except OSError:
                cut += 1
        assert cut == len(attackers)
        assert longest < 1.5


def test_an_answer_that_nobody_takes_is_not_kept(plate: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "ANSWER_SECONDS", 0.3)
    with running({"plate": plate}, Limits(idle_seconds=1, seconds=1, upload_seconds=0.3)) as address:
        client = connected(address)
        client.settimeout(1)
        cut, begun = False, time.monotonic()
        while not cut and time.monotonic() - begun < 15:
            try:  # answers that are not read fill the system's buffers, and then the server waits
                client.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
            except TimeoutError:
                time.sleep(0.1)
            except ConnectionError:
                cut = True
        assert cut
