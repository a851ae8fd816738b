"""Kill commands at random moments and look at what is left: the old result or the new one, never a third.

    python benchmarks/kills.py --kills 100 --output docs/results

Plates are generated, models are small. Before each kill the output holds an old result or nothing; afterwards it is
compared, file by file, with the old result and with what the same command gives when it is left alone.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from fcdd import images
from fcdd.anomalies.plates import generate
from fcdd.detector.detector import Detector
from fcdd.detector.export import export
from fcdd.detector.settings import Settings
from fcdd.nn.architecture import Architecture

OLD, NEW, NOTHING, THIRD = "old", "new", "nothing", "a third"
Outcome = dict[str, str]


@dataclass(frozen=True)
class Command:
    """A command to kill: its name, what it is told, and its outputs by name within a folder."""

    name: str
    words: Callable[[Path], list[str]]  # of the folder that the outputs are in
    outputs: tuple[str, ...]
    overwrite: bool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=0, help="stop earlier, after so many; 0 for no limit")
    parser.add_argument("--output", type=Path, default=Path("docs/results"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        counts = measure(Path(place), options.kills, random.Random(options.seed), options.minutes * 60)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "kills.md").write_text(table(counts), encoding="utf-8")
    print(table(counts))
    sys.exit(any(outcome == THIRD for _, _, outcome in counts))


def measure(root: Path, kills: int, random_: random.Random, seconds: float) -> Counter[tuple[str, bool, str]]:
    """How often each command, with and without an old result, left what; for `seconds`, or without limit where 0."""
    made = commands(prepare(root / "given"))
    places = {command: root / "reference" / str(number) for number, command in enumerate(made)}
    seconds_of = {command: reference(command, place) for command, place in places.items()}
    counts: Counter[tuple[str, bool, str]] = Counter()
    begun = time.monotonic()
    for number, command in zip(range(kills), itertools.cycle(made), strict=False):
        if seconds and time.monotonic() - begun > seconds:
            break
        outcome = kill(command, places[command], seconds_of[command], root / "killed", random_)
        counts[command.name, command.overwrite, outcome] += 1
        print(f"{number + 1:4} {command.name:10} {'--overwrite' if command.overwrite else '':12} {outcome}", flush=True)
    return counts


def prepare(given: Path) -> Path:
    """Plates of 96 pixels, a small detector and its export."""
    plates = generate(20, 6, 2, size=96, seed=3, faintest=0.7)
    for index, plate in enumerate(plates.train):
        save(plate, given / "train" / f"{index:02}.png")
    for index, (plate, kind) in enumerate(zip(plates.test, plates.kinds, strict=True)):
        save(plate, given / "test" / kind / f"{index:02}.png")
    settings = Settings(Architecture(planes=4, directions=2), smallest=96, largest=96, vectors=2000)
    detector = Detector(settings).fit(given / "train")
    detector.save(given / "m.safetensors")
    export(detector, given / "m.onnx", images.find(given / "train"))
    return given


def save(plate: torch.Tensor, path: Path) -> None:
    images.save_png(plate.permute(1, 2, 0).numpy(), path)


def commands(given: Path) -> list[Command]:
    """Every command that writes, with and without an old result to overwrite."""
    trained, exported, good, test = given / "m.safetensors", given / "m.onnx", given / "train", given / "test"

    def command(name: str, words: Sequence[object], *outputs: str) -> list[Command]:
        def of(folder: Path, further: Sequence[str]) -> list[str]:
            return [name, *map(str, words), "-o", str(folder / outputs[0]), "--threads", "1", *further]

        return [
            Command(name, lambda folder: of(folder, []), outputs, False),
            Command(name, lambda folder: of(folder, ["--overwrite"]), outputs, True),
        ]

    return [
        *command("predict", [exported, test], "out"),
        *command("calibrate", [exported, test / "good"], "c.onnx"),
        *command("export", [trained], "e.onnx"),
        *command("audit", [trained, test], "a.html", "a.json"),
        *command("train", [good], "t.safetensors", "t.html"),
    ]


def reference(command: Command, folder: Path) -> float:
    """Run `command` into `folder`, left alone; how many seconds it takes."""
    folder.mkdir(parents=True)
    begun = time.monotonic()
    done = subprocess.run(start(command, folder), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return time.monotonic() - begun


def kill(command: Command, whole: Path, seconds: float, folder: Path, random_: random.Random) -> str:
    """Start `command` where the old result `whole` is, or nothing; kill it after a random time; say what is there."""
    shutil.rmtree(folder, ignore_errors=True)
    if command.overwrite:
        shutil.copytree(whole, folder)
        for path in folder.rglob("*"):
            os.utime(path, (1, 1))  # by which old files are known
    else:
        folder.mkdir(parents=True)
    before = state(command, folder)
    process = subprocess.Popen(start(command, folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    # Half of the kills fall into the last part, in which results are written.
    time.sleep(seconds * random_.choice([random_.uniform(0.2, 1.05), random_.uniform(0.85, 1.1)]))
    process.kill()
    process.wait()
    after = state(command, folder)
    if after == before:
        return OLD if command.overwrite else NOTHING
    complete = set(after) == set(state(command, whole)) and all(after[name] != before.get(name) for name in after)
    return NEW if complete and all(readable(folder / name) for name in after) else THIRD


def start(command: Command, folder: Path) -> list[str]:
    return [sys.executable, "-m", "fcdd.cli", *command.words(folder)]


def state(command: Command, folder: Path) -> Outcome:
    """Each file of the command's outputs, with its content and its time."""
    found = {}
    for name in command.outputs:
        place = folder / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.is_file():
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                found[str(path.relative_to(folder))] = f"{content} {path.stat().st_mtime_ns}"
    return found


def readable(path: Path) -> bool:
    """Whether a file ends as one of its kind ends; models are read, with their checksums."""
    if path.suffix in (".onnx", ".safetensors"):
        from fcdd import load

        load(path, threads=1)
        return True
    ends = {".html": b"</html>", ".json": b"}", ".jsonl": b"}", ".csv": b"", ".png": b"IEND\xaeB`\x82"}
    return path.read_bytes().rstrip().endswith(ends[path.suffix])


def table(counts: Counter[tuple[str, bool, str]]) -> str:
    """The page: one line a command, with and without `--overwrite`."""
    lines = [
        "# What a kill leaves",
        "",
        f"{sum(counts.values())} commands on generated plates, each ended by SIGKILL at a random moment "
        "(`python benchmarks/kills.py`). Without `--overwrite` there was no old result; with it, the old one has to",
        "stay whole until the new one is. A third state, half a result or a mixture of two, must not occur.",
        "",
        "| command | | nothing yet | old result | new result | a third |",
        "|---|---|---|---|---|---|",
    ]
    for name, overwrite in dict.fromkeys((name, overwrite) for name, overwrite, _ in counts):
        cells = " | ".join(str(counts[name, overwrite, outcome]) for outcome in (NOTHING, OLD, NEW, THIRD))
        lines.append(f"| {name} | {'`--overwrite`' if overwrite else ''} | {cells} |")
    sums = " | ".join(str(sum(c for (_, _, o), c in counts.items() if o == out)) for out in (NOTHING, OLD, NEW, THIRD))
    return "\n".join([*lines, f"| sum | | {sums} |", ""])


if __name__ == "__main__":
    main()
