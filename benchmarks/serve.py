"""Load, overload and fuzz runs of `fcdd serve`, written as docs/results/serving.md.

python benchmarks/serve.py plate.onnx --images plates/test
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import requests

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from fcdd import images  # noqa: E402
from tests.serve import fuzzing  # noqa: E402  the same requests as the tests', more of them

RESULTS = ROOT / "docs" / "results" / "serving.md"
MEGABYTE = 1e6


@dataclass
class Run:
    """What the clients saw."""

    seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)  # of answers with 200
    refused_without_wait: int = 0  # 503 without Retry-After
    failures: list[str] = field(default_factory=list)  # no answer at all

    def milliseconds(self, quantile: float) -> float:
        return 1000 * float(np.quantile(self.latencies, quantile))


@contextmanager
def served(model: Path, *options: str) -> Iterator[str]:
    command = [sys.executable, "-m", "fcdd.cli", "serve", str(model), "--port", "0", "--log-level", "warning", *options]
    port = 18_000 + os.getpid() % 10_000
    command[command.index("0")] = str(port)
    process = subprocess.Popen(command)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                requests.get(f"{address}/readyz", timeout=5).raise_for_status()
                break
            except requests.RequestException:
                time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        assert process.wait(60) == 0


def load(address: str, path: str, contents: list[bytes], count: int, connections: int) -> Run:
    """`count` requests from this many connections at once, each sending its next as soon as it is answered."""
    run, lock, numbers = Run(), threading.Lock(), itertools.count()

    def client() -> None:
        where = urlsplit(address)
        connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=60)
        while (number := next(numbers)) < count:
            begun = time.monotonic()
            try:
                connection.request("POST", path, contents[number % len(contents)], {"Content-Type": "image/png"})
                answer = connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException) as error:
                with lock:
                    run.failures.append(repr(error))
                connection.close()
                continue
            with lock:
                run.statuses[answer.status] += 1
                if answer.status == 200:
                    run.latencies.append(time.monotonic() - begun)
                elif answer.status == 503 and not answer.getheader("Retry-After"):
                    run.refused_without_wait += 1

    threads = [threading.Thread(target=client) for _ in range(connections)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run.seconds = time.monotonic() - begun
    return run


def metric(address: str, name: str) -> float:
    lines = requests.get(f"{address}/metrics", timeout=20).text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))


def load_section(address: str, path: str, contents: list[bytes], count: int, connections: int) -> list[str]:
    load(address, path, contents, 4 * connections, connections)  # until caches and pools are full
    rows = ["| requests | requests/s | p50, ms | p99, ms | errors | memory, MB |", "|---|---|---|---|---|---|"]
    rows.append(f"| before | | | | | {metric(address, 'process_resident_memory_bytes') / MEGABYTE:.0f} |")
    for name in ("first", "second"):
        run = load(address, path, contents, count, connections)
        errors = count - run.statuses[200]
        speed = f"{count / run.seconds:.1f} | {run.milliseconds(0.5):.0f} | {run.milliseconds(0.99):.0f}"
        memory = metric(address, "process_resident_memory_bytes") / MEGABYTE
        rows.append(f"| {name} {count:,} | {speed} | {errors} | {memory:.0f} |")
        print(rows[-1], run.failures[:3], flush=True)
    size = metric(address, "fcdd_batch_images_sum") / metric(address, "fcdd_batch_images_count")
    return ["## Load", "", *rows, "", f"{connections} connections. Mean batch: {size:.1f} images.", ""]


def overload_section(model: Path, path: str, contents: list[bytes]) -> list[str]:
    with served(model, "--queue", "8") as address:
        run = load(address, path, contents, 1000, 64)
        after = load(address, path, contents, 8, 4)
    print(run.statuses, run.failures[:3], flush=True)
    others = sum(n for status, n in run.statuses.items() if status not in (200, 503)) + len(run.failures)
    return [
        "## Overload",
        "",
        "1,000 requests from 64 connections that do not wait, against a queue of 8.",
        "",
        "| answered | 503 with Retry-After | 503 without | anything else | answered right after, of 8 |",
        "|---|---|---|---|---|",
        f"| {run.statuses[200]} | {run.statuses[503] - run.refused_without_wait} | {run.refused_without_wait} "
        f"| {others} | {after.statuses[200]} |",
        "",
    ]


def fuzz_section(address: str, model: str, examples: int, rounds: int) -> list[str]:
    by_operation = fuzzing.from_schema(address, model, examples)
    damage = fuzzing.from_damage(address, model, rounds)
    rows = ["| requests | how many | statuses |", "|---|---|---|"]
    for name, statuses in [*by_operation.items(), ("damaged images", damage)]:
        told = ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items()))
        rows.append(f"| {name} | {statuses.total():,} | {told} |")
    print("\n".join(rows), flush=True)
    text = "Every answer came within 10 s, none was a 500, and each was what the schema says (schemathesis's checks)."
    return ["## Fuzz", "", *rows, "", text, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--examples", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    paths = images.find(options.images)[:32]
    contents, path = [file.read_bytes() for file in paths], f"/v1/models/{options.model.stem}/predict"
    height, width = images.size(paths[0])
    with served(options.model) as address:
        detail = json.loads(requests.get(f"{address}/v1/models/{options.model.stem}", timeout=20).text)
        sections = load_section(address, path, contents, options.requests, options.connections)
        sections += fuzz_section(address, options.model.stem, options.examples, options.rounds)
    sections += overload_section(options.model, path, contents)
    about = (
        f"Made by `make bench-serve` (`benchmarks/serve.py`): images of {width} × {height}, network input "
        f"{detail['width']} × {detail['height']}, {os.cpu_count()} cores shared by server and clients, "
        f"Python {platform.python_version()}. Clients send the next image as soon as one is answered."
    )
    options.output.write_text("\n".join(["# The server under load", "", about, "", *sections]))


if __name__ == "__main__":
    main()
