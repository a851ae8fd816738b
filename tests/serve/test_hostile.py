"""A real server under requests made to bring it down, while an honest client goes on working."""

from __future__ import annotations

import io
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import pytest
import requests
from PIL import Image

from fcdd.detector.runtime import Runtime
from fcdd.serve.limits import Limits

from .hostile import BODIES
from .running import PATIENCE, HalfRequest, connected, running
from .test_app import metrics
from .test_server import process

PREDICT = "/v1/models/plate/predict"
NOISE = 3.0  # seconds that a busy machine may add
UNIT = Path(__file__).parents[2] / "packaging" / "fcdd.service"


class Honest(threading.Thread):
    """Sends one image after the other; `longest` is the longest it waited, `wrong` what was no prediction."""

    def __init__(self, address: str, content: bytes) -> None:
        super().__init__()
        self._address, self._content, self._over = address, content, threading.Event()
        self.longest, self.answered, self.wrong = 0.0, 0, []  # type: float, int, list[str]

    def run(self) -> None:
        with requests.Session() as session:
            while not self._over.is_set():
                begun = time.monotonic()
                answer = session.post(self._address + PREDICT, data=self._content, timeout=60)
                self.longest = max(self.longest, time.monotonic() - begun)
                if answer.status_code == 200:
                    self.answered += 1
                else:
                    self.wrong.append(answer.text)

    def __enter__(self) -> Honest:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


@pytest.mark.parametrize("name", BODIES)
def test_one_hostile_request_costs_itself_alone(served: str, defect: Path, name: str) -> None:
    content_type, make = BODIES[name]
    content = make()
    with Honest(served, defect.read_bytes()) as honest:
        time.sleep(0.2)
        answer = requests.post(served + PREDICT, data=content, headers={"Content-Type": content_type}, timeout=60)
    assert answer.status_code in (200, 413, 415, 422, 504), answer.text
    assert not honest.wrong
    assert honest.answered
    assert honest.longest < 1 + NOISE
    assert requests.get(served + "/readyz", timeout=20).status_code == 200


def test_work_of_clients_that_left_is_not_done(plate: Runtime, defect: Path) -> None:
    content = defect.read_bytes()
    head = f"POST {PREDICT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n\r\n".encode()
    with running({"plate": plate}, Limits(queue=512, images=1)) as address:
        requests.post(address + PREDICT, data=content, timeout=20)
        for _ in range(400):
            client = connected(address)
            client.sendall(head + content)
            client.close()
        begun = time.monotonic()
        assert requests.post(address + PREDICT, data=content, timeout=60).status_code == 200
        assert time.monotonic() - begun < 5
        told = metrics(address)
        assert told["fcdd_queue_images"] < 50
        assert told['fcdd_batch_images_sum{model="plate"}'] < 300


def test_stalled_uploads_do_not_keep_the_others_out(plate: Runtime, defect: Path) -> None:
    with running({"plate": plate}, Limits(queue=4, images=4)) as address:
        stalled = [HalfRequest(address, PREDICT, bytes(1000)) for _ in range(4)]
        time.sleep(2.3)
        answer = requests.post(address + PREDICT, data=defect.read_bytes(), timeout=20)
        assert answer.status_code == 200
        told = [one for one in stalled if one.displaced()]
        assert len(told) == 1


def large(seed: int) -> bytes:
    """An honest photograph of 25 megapixels."""
    small = np.random.default_rng(seed).integers(0, 256, (500, 500, 3), np.uint8)
    stream = io.BytesIO()
    Image.fromarray(small).resize((5000, 5000)).save(stream, "JPEG")
    return stream.getvalue()


@contextmanager
def watched(pid: int) -> Iterator[list[float]]:
    """The largest memory that a process and its children take together while the block runs, in bytes."""
    peak, stop = [0.0], threading.Event()

    def look() -> None:
        parent = psutil.Process(pid)
        while not stop.wait(0.02):
            total = 0
            for one in [parent, *parent.children(recursive=True)]:
                try:
                    total += one.memory_info().rss
                except psutil.NoSuchProcess:
                    continue
            peak[0] = max(peak[0], total)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield peak
    finally:
        stop.set()
        thread.join()


def test_memory_stays_below_that_of_the_unit(plate_model: Path) -> None:
    most = next(line for line in UNIT.read_text().splitlines() if line.startswith("MemoryMax="))
    allowed = int(most.removeprefix("MemoryMax=").removesuffix("G")) * 2**30
    images = [large(seed) for seed in range(5)]
    with process(plate_model, "--timeout", 120) as (server, address), watched(server.pid) as peak:

        def body() -> HalfRequest | None:
            try:
                return HalfRequest(address, PREDICT, bytes(31_000_000))
            except OSError:
                return None  # refused while it was sent

        with ThreadPoolExecutor(16) as pool:
            unfinished = list(pool.map(lambda _: body(), range(64)))
        time.sleep(2.1)

        def ask(content: bytes) -> int:
            for _ in range(20):
                answer = requests.post(address + PREDICT + "?heatmap=png", data=content, timeout=60)
                if answer.status_code != 503:
                    return answer.status_code
                time.sleep(int(answer.headers["Retry-After"]))
            return 503

        with ThreadPoolExecutor(5) as pool:
            assert list(pool.map(ask, images)) == [200] * 5
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 0
        assert server.stderr
        for line in server.stderr:
            json.loads(line)
    assert 0 < peak[0] < allowed
    print(f"peak {peak[0] / 2**20:.0f} MB, {sum(one is not None for one in unfinished)} unfinished bodies")


def test_a_thousand_half_sent_headers_leave_it_reachable(plate_model: Path, defect: Path) -> None:
    with process(plate_model) as (server, address):
        held: list[socket.socket] = []
        try:
            for _ in range(1100):
                client = connected(address)
                client.sendall(b"POST /v1/models HTTP/1.1\r\nHost: ")
                held.append(client)
        except OSError:
            pass  # more than this process may open
        assert len(held) > 700
        begun = time.monotonic()
        assert requests.post(address + PREDICT, data=defect.read_bytes(), timeout=20).status_code == 200
        assert time.monotonic() - begun < 1 + NOISE
        begun = time.monotonic()
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 0
        assert time.monotonic() - begun < 5
        assert server.stderr
        lines = [json.loads(line) for line in server.stderr]
        assert len(lines) < 30
        for client in held:
            client.close()
