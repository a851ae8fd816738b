"""Scoring a collection on a local Ray, undisturbed and with a worker killed on the way: benchmarks/mass.py MODEL.onnx

The collection is generated: plates of 256 px with noise of their own, as PNG. Workers' CPU time per image is what
other programs on the machine disturb least, and what a cluster is paid for. Needs the training extra for the plates.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import psutil

from fcdd.anomalies.plates import generate
from fcdd.images import save_png

SIDE, SEED, KINDS = 256, 7, 40


def write_collection(folder: Path, count: int) -> int:
    """`count` plates, no two of them alike; the bytes of all files."""
    plates = generate(KINDS, 1, 0, size=SIDE, seed=SEED).train.permute(0, 2, 3, 1).numpy().astype(np.int16)
    random = np.random.default_rng(SEED)
    folder.mkdir(parents=True)
    for index in range(count):
        noise = random.integers(-4, 5, (SIDE, SIDE, 1), dtype=np.int16)
        save_png(np.clip(plates[index % KINDS] + noise, 0, 255).astype(np.uint8), folder / f"{index:05}.png", fast=True)
    return sum(path.stat().st_size for path in folder.iterdir())


def workers_of(run: subprocess.Popen[str]) -> list[psutil.Process]:
    found = psutil.Process(run.pid).children(recursive=True)
    return [process for process in found if "MapBatches(Worker)" in " ".join(process.cmdline())]


def score(model: Path, folder: Path, output: Path, *, kill: bool) -> dict[str, float]:
    """Run the command; its figures. With `kill` one worker gets SIGKILL once a quarter of the partitions is there."""
    line = [sys.executable, "-m", "fcdd.cli", "predict", str(model), str(folder), "-o", str(output), "--on", "ray"]
    begun, cpu, killed = time.time(), {}, 0
    with subprocess.Popen([*line, "--json"], stdout=subprocess.PIPE, text=True) as run:
        parts = -(-len(list(folder.iterdir())) // 32)
        while run.poll() is None:
            done = len(list(output.glob("part-*")))
            for process in workers_of(run) if 0 < done < parts else []:
                times = process.cpu_times()
                cpu[process.pid] = times.user + times.system
                if kill and not killed and done >= parts // 4:
                    process.kill()
                    killed = process.pid
            time.sleep(0.2)
        told = json.loads(run.stdout.read() if run.stdout else "")
    finished = sorted(path.stat().st_mtime for path in output.glob("part-*"))
    steady = (len(finished) - 1) * 32 / (finished[-1] - finished[0])
    return {
        "killed": killed,
        "seconds": time.time() - begun,
        "start": finished[0] - begun,
        "steady_per_second": steady,
        "cpu_seconds_per_image": sum(cpu.values()) / told["images"],
        "images": told["images"],
        "scored": told["scored"],
    }


def once(folder: Path, output: Path) -> tuple[int, int]:
    """How many images have exactly one row, and how many have not."""
    from pyarrow import parquet

    rows = Counter(
        name for path in output.glob("part-*/results.parquet") for name in parquet.read_table(path)["file"].to_pylist()
    )
    names = {path.name for path in folder.iterdir()}
    right = sum(rows[name] == 1 for name in names)
    return right, len(names | set(rows)) - right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--images", type=int, default=2000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "in"
        size = write_collection(folder, asked.images)
        print(
            f"{asked.images} plates of {SIDE} px, {size / asked.images / 1e3:.0f} kB each; {psutil.cpu_count()} cores"
        )
        for name in ("undisturbed", "killed"):
            output = Path(place) / name
            told = score(asked.model, folder, output, kill=name == "killed")
            right, wrong = once(folder, output)
            written = sum(path.stat().st_size for path in output.glob("part-*/*"))
            print(
                f"{name}: {told['images']} in, {right} out once, {wrong} not; {told['seconds']:.0f} s, of which "
                f"{told['start']:.0f} s to the first partition; then {told['steady_per_second']:.1f} images/s; "
                f"workers' CPU {told['cpu_seconds_per_image'] * 1e3:.1f} ms an image; "
                f"{written / asked.images:.0f} bytes a result"
                + (f"; SIGKILL to worker {told['killed']:.0f}" if told["killed"] else ""),
                flush=True,
            )


if __name__ == "__main__":
    main()
