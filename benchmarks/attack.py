"""Attacks on a server of its own while four honest clients keep working, written as docs/results/attack.md.

python benchmarks/attack.py --minutes 15

The server is started here, on a free port of this machine's loopback; no other can be attacked.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import psutil
import requests

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # for the tests' helpers
import attackers  # noqa: E402

from fcdd import images  # noqa: E402
from fcdd.detector.runtime import Runtime  # noqa: E402

RESULTS = ROOT / "docs" / "results" / "attack.md"
HONEST = 4
PAUSE = 0.1  # seconds between two requests of an honest client
TRIES = 30
STILL_THERE = 5.0  # seconds that attackers go on when the server is told to stop


@dataclass
class Honest:
    """What the honest clients saw: every answer must be the runtime's."""

    seconds: list[float] = field(default_factory=list)  # from the first try to the answer
    wrong: list[str] = field(default_factory=list)
    told_to_wait: int = 0

    def work(self, address: str, path: str, asked: list[tuple[bytes, float, str]], until: float) -> None:
        session, number = requests.Session(), 0
        while time.monotonic() < until:
            content, score, verdict = asked[number % len(asked)]
            begun = time.monotonic()
            answer = self._ask(session, address + path, content)
            self.seconds.append(time.monotonic() - begun)
            number += 1
            if isinstance(answer, str):
                self.wrong.append(answer)
            elif answer["verdict"] != verdict or abs(answer["score"] - score) > 1e-4 * score:
                self.wrong.append(f"{answer['verdict']} {answer['score']} in place of {verdict} {score}")
            time.sleep(PAUSE)

    def _ask(self, session: requests.Session, address: str, content: bytes) -> dict[str, Any] | str:
        """The answer, or why there is none; as any client does, it tries again where it is told to."""
        failed = ""
        for _ in range(TRIES):
            try:
                answer = session.post(address, data=content, timeout=60)
            except requests.RequestException as error:
                failed = repr(error)
                continue
            if answer.status_code == 200:
                found: dict[str, Any] = answer.json()
                return found
            if answer.status_code != 503:
                return answer.text
            self.told_to_wait += 1
            failed = answer.text
            time.sleep(float(answer.headers.get("Retry-After", 1)))
        return failed


@contextmanager
def model_of(given: Path | None) -> Iterator[tuple[Path, list[Path]]]:
    """The model and images to send: those given, or a small one of synthetic plates."""
    if given is not None:
        yield given, []
        return
    import torch

    from fcdd.detector.detector import Detector
    from fcdd.detector.export import export
    from fcdd.detector.settings import Settings
    from fcdd.nn.architecture import Architecture
    from tests.plates import write_plates

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        plates = write_plates(Path(folder, "plates"))
        settings = Settings(Architecture(planes=8, directions=4), smallest=128, largest=128, vectors=8000)
        good = plates / "train" / "good"
        export(Detector(settings).fit(good), Path(folder, "plate.onnx"), images.find(good))
        yield Path(folder, "plate.onnx"), images.find(plates / "test")


class Server:
    """`fcdd serve` as a process, with the memory it takes."""

    def __init__(self, model: Path, log: Path) -> None:
        command = [sys.executable, "-m", "fcdd.cli", "serve", str(model), "--port", "0", "--log-level", "info"]
        self._log = log
        with log.open("w") as stream:
            self.process = subprocess.Popen(command, stderr=stream, cwd=ROOT)
        self.address = self._address()
        self.peak = 0
        self._stop = threading.Event()
        self._watching = threading.Thread(target=self._watch, daemon=True)
        self._watching.start()

    def _address(self) -> str:
        for _ in range(1200):
            lines = self._log.read_text().splitlines()
            if lines:
                address = str(json.loads(lines[0])["address"])
                try:
                    requests.get(f"{address}/readyz", timeout=5).raise_for_status()
                    return address
                except requests.RequestException:
                    pass
            time.sleep(0.05)
        raise RuntimeError("the server did not start")

    def _watch(self) -> None:
        parent = psutil.Process(self.process.pid)
        while not self._stop.wait(0.1):
            try:
                found = [parent, *parent.children(recursive=True)]
                self.peak = max(self.peak, sum(one.memory_info().rss for one in found))
            except psutil.NoSuchProcess:
                continue

    def metric(self, name: str) -> float:
        lines = requests.get(f"{self.address}/metrics", timeout=60).text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))

    def stop(self) -> tuple[float, int]:
        """Seconds from SIGTERM to the end, and the exit code."""
        self._stop.set()
        begun = time.monotonic()
        self.process.terminate()
        try:
            code = self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        return time.monotonic() - begun, code

    def odd_lines(self) -> int:
        """Lines of the log that are not JSON."""
        return sum(not line.startswith('{"time"') for line in self._log.read_text().splitlines())


def report(honest: Honest, tally: attackers.Tally, server: Server, facts: dict[str, str]) -> str:
    asked, wrong = len(honest.seconds), len(honest.wrong)
    middle, late = (np.quantile(honest.seconds, share) for share in (0.5, 0.99))
    statuses = Counter(tally.statuses)
    rows = {
        "requests": f"{tally.sent.total() + asked:,}, of them {asked:,} honest",
        "honest answers correct": f"{asked - wrong:,} of {asked:,}; told to wait {honest.told_to_wait} times",
        "honest clients' time to an answer": f"median {1000 * middle:.0f} ms, p99 {1000 * late:.0f} ms",
        "answers with 500": str(statuses[500]),
        "answers with 503 and 504 to attackers": f"{statuses[503]} and {statuses[504]}",
        "answers that are not what the schema says": str(len(tally.broken)),
        **facts,
        "peak memory, server and decoders": f"{server.peak / 2**20:.0f} MB",
        "log lines that are not JSON": str(server.odd_lines()),
    }
    kinds = Counter({kind.partition(":")[0]: 0 for kind in tally.sent})
    for kind, count in tally.sent.items():
        kinds[kind.partition(":")[0]] += count
    about = (
        f"Made by `make attack` (`benchmarks/attack.py`) on {os.cpu_count()} cores shared by server, attackers and "
        f"honest clients, Python {platform.python_version()}. {HONEST} honest clients send one image after the other "
        "and try again where they are told to wait; their time includes that."
    )
    lines = ["# The server under attack", "", about, "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in rows.items()]
    lines += ["", "| attack | requests |", "|---|---|"]
    lines += [f"| {kind} | {count:,} |" for kind, count in sorted(kinds.items())]
    told = ", ".join(f"{status}: {count:,}" for status, count in sorted(statuses.items()))
    return "\n".join([*lines, "", f"Statuses of the answers to attackers: {told}.", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="an exported model; a small one is made where none is given")
    parser.add_argument("--images", type=Path, help="a folder of honest images, needed with --model")
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    with model_of(options.model) as (model, paths), tempfile.TemporaryDirectory() as folder:
        runtime = Runtime(model, threads=1)
        paths = (images.find(options.images) if options.images else paths)[:16]
        asked = [
            (path.read_bytes(), result.score, str(result.verdict))
            for path in paths
            for result in [runtime.predict(path)]
        ]
        server, honest, tally = Server(model, Path(folder, "log")), Honest(), attackers.Tally()
        target = attackers.Target(int(urlsplit(server.address).port or 0), model.stem, asked[0][0], tally)
        until = time.monotonic() + 60 * options.minutes
        clients = [
            threading.Thread(target=honest.work, args=(server.address, target.path, asked, until))
            for _ in range(HONEST)
        ]
        for thread in clients:
            thread.start()
        attacking = attackers.run(target, until + STILL_THERE)
        for thread in clients:
            thread.join()
        alive = server.process.poll() is None
        facts = {"decoders replaced": f"{server.metric('fcdd_decoder_restarts'):.0f}" if alive else "unknown"}
        seconds, code = server.stop()
        facts["server restarts"] = "0" if alive else f"it ended by itself with code {code}"
        facts["time to obey SIGTERM, under attack"] = f"{seconds:.1f} s, code {code}"
        for thread in attacking:
            thread.join(attackers.TIMEOUT)
        text = report(honest, tally, server, facts)
    print(text, *honest.wrong[:5], *tally.broken[:3], sep="\n")
    options.output.write_text(text)


if __name__ == "__main__":
    main()
