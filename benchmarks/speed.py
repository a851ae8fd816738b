"""How fast training and scoring are, against an earlier state in the same run: `make bench-speed DATA=… BEFORE=…`.

DATA is a class of MVTec-AD, BEFORE a checkout of the earlier state (`git worktree add ../before COMMIT`). Files of
1024 × 1024 pixels are made from the class. Every measurement is a process of its own, the two states take turns, and
the median of the rounds counts, in seconds and in seconds of processor time, which a busy machine disturbs less. Each
finished measurement is kept as a small file and not made again; the page docs/results/speed.md is written from those.
On two idle cores: a round of training 3 minutes, of the rest 1; export 3; profiles 5; growth 15.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from speed_table import page

SIDE, GOOD, TEST = 1024, 245, 60
SCORED = 32  # images from memory
GROWTH = (50, 200, 1000, 10_000)
SIZES = (256, 512, 1024, 4096)
HERE = Path(__file__).resolve().parent.parent
Told = dict[str, Any]

LOAD = "from fcdd.detector import load; judge = load(Path({model!r}), 0)"
BACKEND = "from fcdd.detector.runtime import Runtime; judge = Runtime({model!r}, backend={backend!r})"
# What a process prints: images per second of wall time and of processor time, once everything is warm.
SCORE = """
import json, time
from pathlib import Path
from fcdd import images
{load}
arrays = [images.load(path) for path in images.find(Path({folder!r}))[:{count}]]
judge.score_samples(arrays[:8])
begun, used = time.monotonic(), time.process_time()
judge.score_samples(arrays)
print(json.dumps({{"images": len(arrays), "seconds": time.monotonic() - begun, "cpu": time.process_time() - used}}))
"""
PEAK = """
import json, time, numpy, torch
x = torch.rand(3072, 3072)
taken = []
for _ in range(6):
    begun = time.monotonic(); x @ x; taken.append(time.monotonic() - begun)
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
node = helper.make_node("MatMul", ["x", "w"], ["y"])
shapes = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3072, 3072]) for n in ("x", "y")]
graph = helper.make_graph([node], "g", shapes[:1], shapes[1:], [numpy_helper.from_array(x.numpy(), "w")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
best = []
for _ in range(6):
    begun = time.monotonic(); session.run(None, {"x": x.numpy()}); best.append(time.monotonic() - begun)
work = 2 * 3072**3 / 1e9
print(json.dumps({"torch": work / min(taken), "onnxruntime": work / min(best)}))
"""
WORK = """
import json, onnx
from onnx import numpy_helper
from pathlib import Path
from fcdd.detector.detector import Detector
from fcdd.detector import graph
detector = Detector.load({model!r})
model = graph._network(detector, False)
for one in model.graph.input:
    one.type.tensor_type.shape.dim[0].dim_value = 1
model = onnx.shape_inference.infer_shapes(model, data_prop=True)
values = (*model.graph.value_info, *model.graph.output)
shapes = {{v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in values}}
shapes |= {{c.name: list(c.dims) for c in model.graph.initializer}}
total = dict.fromkeys(("Conv", "MatMul", "Gemm"), 0.0)
for node in model.graph.node:
    if node.op_type in total:
        each = 1
        for length in shapes[node.output[0]]:
            each *= length
        inner = shapes[node.input[1]]
        depth = inner[1] * inner[2] * inner[3] if node.op_type == "Conv" else shapes[node.input[0]][-1]
        total[node.op_type] += 2 * each * depth / 1e9
print(json.dumps(total))
"""


@dataclass(frozen=True)
class Bench:
    """Where things lie, and how often each is measured."""

    source: Path  # a class of MVTec-AD
    before: Path  # a checkout of the earlier state
    scratch: Path
    kept: Path
    rounds: int

    def once(self, name: str, measure: Callable[[], Told]) -> None:
        path = self.kept / f"{name}.json"
        if not path.exists():
            begun = time.monotonic()
            told = measure()
            told["took"] = round(time.monotonic() - begun)
            path.write_text(json.dumps(told, indent=1) + "\n")
            print(name, json.dumps(told), flush=True)

    def state(self, now: bool) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str((HERE if now else self.before) / "src")}

    def command(self, now: bool, *words: object) -> Told:
        """A command of fcdd in a process of its own: its JSON answer, seconds, processor seconds and peak memory."""
        return self._measured([sys.executable, "-m", "fcdd.cli", *map(str, words), "--json"], now)

    def code(self, text: str, now: bool) -> Told:
        return self._measured([sys.executable, "-c", text], now)

    def _measured(self, words: Sequence[str], now: bool) -> Told:
        begun = time.monotonic()
        process = subprocess.Popen(words, env=self.state(now), stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        answer = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"{' '.join(words)[:200]} ended with {status}")
        told = {"wall": time.monotonic() - begun, "cpu_all": used.ru_utime + used.ru_stime}
        return {**told, "memory_gb": used.ru_maxrss / 2**20, **json.loads(answer.splitlines()[-1])}


def files(bench: Bench) -> None:
    """The class at 1024 × 1024 with the noise of a camera, so that PNG has something to do."""
    for part, limit in (("train/good", GOOD), ("test", TEST)):
        found = sorted(p for p in (bench.source / part).rglob("*") if p.is_file())
        for number, path in enumerate(found[:: max(1, len(found) // limit)][:limit]):
            target = bench.scratch / "files" / part / f"{number:03}.png"
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                _noisy(path, SIDE, number).save(target)


def _noisy(path: Path, side: int, seed: int) -> Image.Image:
    random = np.random.default_rng(seed)
    pixels = np.asarray(Image.open(path).convert("RGB").resize((side, side), Image.Resampling.BICUBIC), np.float32)
    noise = random.normal(0, 1, (side, side, 1)).astype(np.float32) + random.uniform(-4, 4)
    return Image.fromarray((pixels + noise).round().clip(0, 255).astype(np.uint8))


def kinds() -> dict[str, tuple[bool, list[str]]]:
    """What is compared: the earlier default, the same method now, and the default of now in two qualities; whether it
    is of now, and its options."""
    same = ["--method", "nominal"]
    now = {quality: (True, ["--method", "sum", "--quality", quality]) for quality in ("fast", "standard")}
    return {"before": (False, same), "nominal": (True, same), **now}


def training(bench: Bench) -> Told:
    good, told = bench.scratch / "files" / "train" / "good", {}
    for name, (now, options) in kinds().items():
        answer = bench.command(now, "train", good, "-o", _model(bench, name), "--overwrite", *options)
        told[name] = {key: answer[key] for key in ("wall", "cpu_all", "memory_gb")}
    return told


def _model(bench: Bench, name: str) -> Path:
    return bench.scratch / f"{name}.safetensors"


def predicting(bench: Bench) -> Told:
    told = {}
    for name, (now, _) in kinds().items():
        words = (_model(bench, name), bench.scratch / "files" / "test", "-o", bench.scratch / "out", "--overwrite")
        answer = bench.command(now, "predict", *words)
        told[name] = {key: answer[key] for key in ("wall", "cpu_all", "memory_gb", "images_per_second")}
    return told


def scoring(bench: Bench) -> Told:
    folder = str(bench.scratch / "files" / "test")
    told = {}
    for name, (now, _) in kinds().items():
        load = LOAD.format(model=str(_model(bench, name)))
        told[name] = bench.code(SCORE.format(load=load, folder=folder, count=SCORED), now)
    return told


def export(bench: Bench) -> Told:
    told: Told = {}
    good = bench.scratch / "files" / "train" / "good"
    for method in ("nominal", "fast", "standard"):
        for precision in ("fp32", "int8"):
            target = _model(bench, method).with_suffix(f".{precision}.onnx")
            words = ("-o", target, "--images", good, "--precision", precision, "--overwrite")
            answer = bench.command(True, "export", _model(bench, method), *words)
            told[f"{method} {precision}"] = {"parity": answer["parity"], "megabytes": answer["megabytes"]}
    for _ in range(bench.rounds):
        for name, told_of in told.items():
            method, precision = name.rsplit(" ", 1)
            for backend in ("onnxruntime", "openvino"):
                load = BACKEND.format(
                    model=str(_model(bench, method).with_suffix(f".{precision}.onnx")), backend=backend
                )
                code = SCORE.format(load=load, folder=str(bench.scratch / "files" / "test"), count=SCORED)
                told_of.setdefault(backend, []).append(bench.code(code, True))
    return told


def peak(bench: Bench) -> Told:
    """What the machine can do in products of matrices, and how much work an image is."""
    work = {
        name: bench.code(WORK.format(model=str(_model(bench, name))), True) for name in ("nominal", "fast", "standard")
    }
    return {
        **bench.code(PEAK, True),
        "work": {n: sum(w[k] for k in ("Conv", "MatMul", "Gemm")) for n, w in work.items()},
    }


def profile(bench: Bench) -> Told:
    """Where the time goes, by py-spy: the functions of the most samples, in hundredths."""
    told: Told = {}
    if shutil.which("py-spy", path=str(Path(sys.executable).parent)) is None:
        return told
    for name, (now, options) in kinds().items():
        files, out = bench.scratch / "files", bench.scratch / "out"
        for what, words in {
            "train": ("train", files / "train" / "good", "-o", bench.scratch / "profiled.safetensors", *options),
            "predict": ("predict", _model(bench, name), files / "test", "-o", out),
        }.items():
            raw = bench.scratch / "profile.txt"
            spy = [
                str(Path(sys.executable).with_name("py-spy")),
                "record",
                "-r",
                "50",
                "-f",
                "raw",
                "-o",
                str(raw),
                "--",
            ]
            run = [sys.executable, "-m", "fcdd.cli", *map(str, words), "--overwrite", "--json"]
            subprocess.run([*spy, *run], env=bench.state(now), check=True, capture_output=True)
            told[f"{what}, {name}"] = _hottest(raw.read_text())
    return told


def _hottest(raw: str, most: int = 12) -> list[str]:
    samples = Counter[str]()
    for line in raw.splitlines():
        stack, _, count = line.rpartition(" ")
        samples[stack.rpartition(";")[2]] += int(count)
    total = max(1, samples.total())
    return [f"{100 * count / total:5.1f} %  {name}" for name, count in samples.most_common(most)]


def growth(bench: Bench, count: int) -> Told:
    """Training on `count` images of 256 × 256: the class with other noise and light, as often as needed."""
    source = sorted((bench.source / "train" / "good").iterdir())
    folder = bench.scratch / f"good-{count}"
    for number in range(count):
        target = folder / f"{number:05}.jpg"
        if not target.exists():
            folder.mkdir(exist_ok=True)
            _noisy(source[number % len(source)], 256, number).save(target, quality=95)
    told = {}
    for method in ("nominal", "sum"):
        words = (folder, "-o", bench.scratch / "grown.safetensors", "--overwrite", "--method", method)
        answer = bench.command(True, "train", *words)
        told[method] = {key: answer[key] for key in ("wall", "cpu_all", "memory_gb")}
    shutil.rmtree(folder)
    return told


def sizes(bench: Bench, side: int) -> Told:
    """Scoring images of `side` × `side` pixels from memory, with the model that was trained at 1024."""
    folder = bench.scratch / f"side-{side}"
    folder.mkdir(exist_ok=True)
    for path in sorted((bench.scratch / "files" / "test").iterdir())[: 4 if side > SIDE else 16]:
        Image.open(path).resize((side, side)).save(folder / path.name, compress_level=1)
    load = LOAD.format(model=str(_model(bench, "standard")))
    told = bench.code(SCORE.format(load=load, folder=str(folder), count=SCORED), True)
    shutil.rmtree(folder)
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a class of MVTec-AD")
    parser.add_argument("--before", type=Path, required=True, help="a checkout of the earlier state")
    parser.add_argument("--scratch", type=Path, default=Path("runs/speed"))
    parser.add_argument("--output", type=Path, default=HERE / "docs" / "results")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--largest", type=int, default=GROWTH[-1], help="no growth beyond so many images")
    parser.add_argument(
        "--only", nargs="*", default=(), help="train, predict, score, export, peak, profile, size, growth"
    )
    options = parser.parse_args()
    bench = Bench(options.data, options.before, options.scratch, options.output / "runs" / "speed", options.rounds)
    for folder in (bench.kept, bench.scratch):
        folder.mkdir(parents=True, exist_ok=True)
    files(bench)
    parts: list[tuple[str, Callable[[], Told]]] = []
    for what, measure in (("train", training), ("predict", predicting), ("score", scoring)):
        parts += [(f"{what}-{number}", partial(measure, bench)) for number in range(bench.rounds)]
    parts += [(what.__name__, partial(what, bench)) for what in (export, peak, profile)]
    parts += [(f"size-{side}", partial(sizes, bench, side)) for side in SIZES]
    parts += [(f"growth-{count}", partial(growth, bench, count)) for count in GROWTH if count <= options.largest]
    for name, measured in parts:
        if not options.only or name.partition("-")[0] in options.only:
            bench.once(name, measured)
    (options.output / "speed.md").write_text(page(bench.kept, bench.source.name), encoding="utf-8")


if __name__ == "__main__":
    main()
