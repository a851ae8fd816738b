"""Clients that open connections and do not use them as they should."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest
import requests

from fcdd.detector.runtime import Runtime
from fcdd.serve.limits import Limits

from .running import HalfRequest, connected, ended, running

PREDICT = "/v1/models/plate/predict"
HALF = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-More: "


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
            begun = time.monotonic()
            with pytest.raises(OSError):  # noqa: PT011  a reset or a broken pipe
                for letter in HALF * 100:
                    client.sendall(bytes([letter]))
                    time.sleep(0.05)
            assert time.monotonic() - begun < 5


def test_an_honest_connection_is_kept(plate: Runtime) -> None:
    with running({"plate": plate}, Limits(header_seconds=0.2)) as address, requests.Session() as session:
        for _ in range(3):
            assert session.get(address + "/healthz", timeout=20).status_code == 200
            time.sleep(0.4)
        kept = session.get_adapter(address).poolmanager.connection_from_url(address)  # type: ignore[attr-defined]
        assert kept.num_connections == 1


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


def test_where_all_connections_work_a_new_one_is_told_to_wait(plate: Runtime, defect: Path) -> None:
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


def test_an_answer_that_nobody_takes_is_not_kept(plate: Runtime, defect: Path) -> None:
    with running({"plate": plate}, Limits(idle_seconds=1)) as address:
        client = connected(address)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        content = defect.read_bytes()
        request = f"POST {PREDICT}?heatmap=json HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n\r\n".encode()
        with pytest.raises(OSError):  # noqa: PT011  the server is not there any more
            for _ in range(400):
                client.sendall(request + content)
                time.sleep(0.02)
        assert requests.get(address + "/readyz", timeout=20).status_code == 200
