"""The exported model against the trained one: parity on MVTec-AD, cold start, one image: `make bench-runtime DATA=…`.

For every class a detector (trained where FOLDER has none yet) is exported and judged on all test images by torch,
ONNX Runtime and, where installed, OpenVINO. Every class is kept as one JSON file, so a stopped benchmark goes on; the
page docs/results/deployment.md is written from those files.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fcdd import folders, images
from fcdd.detector.detector import Detector
from fcdd.detector.export import export
from fcdd.detector.runtime import Runtime
from fcdd.errors import ModelError

# Each measurement has a process of its own: models that take turns in one push each other out of the caches, and the
# waiting threads of one take the cores from the other.
LOADED = {
    "torch": "import torch; torch.set_num_threads({threads}); from fcdd.detector import Detector; "
    "judge = Detector.load({model!r})",
    "onnxruntime": "from fcdd.detector.runtime import Runtime; judge = Runtime({model!r}, threads={threads})",
    "openvino": "from fcdd.detector.runtime import Runtime; "
    "judge = Runtime({model!r}, threads={threads}, backend='openvino')",
}
COLD = "import time; begun = time.perf_counter(); {load}; judge.predict({image!r}); print(time.perf_counter() - begun)"
WARM = """{load}
import statistics, time
content, taken = open({image!r}, "rb").read(), []
for _ in range({repeats}):
    begun = time.perf_counter()
    judge.predict(content)
    taken.append(1000 * (time.perf_counter() - begun))
print(statistics.median(taken[5:]))
"""
ROUNDS = 5
REPEATS = 30


def parity(detector: Detector, runtime: Runtime, paths: Sequence[Path]) -> dict[str, float]:
    """Largest differences over `paths`: score relative, heatmap of its range, and verdicts that differ."""
    told = {"score": 0.0, "heatmap": 0.0, "verdicts": 0, "images": len(paths)}
    for expected, found in zip(detector.predict(paths), runtime.predict(paths), strict=True):
        span = float(np.ptp(expected.heatmap))
        told["score"] = max(told["score"], abs(found.score / expected.score - 1))
        told["heatmap"] = max(told["heatmap"], float(np.abs(found.heatmap - expected.heatmap).max()) / span)
        told["verdicts"] += found.verdict != expected.verdict
    return told


def job(root: Path, models: Path) -> dict[str, Any]:
    """Train where needed, export in every precision, compare on the test images."""
    trained, good = models / f"{root.name}.safetensors", images.find(root / "train" / "good")
    if not trained.exists():
        Detector().fit(good).save(trained)
    detector, paths = Detector.load(trained), folders.read_test(root).paths
    exported = models / f"{root.name}.onnx"
    told: dict[str, Any] = {"class": root.name, "export": export(detector, exported, good)[0].parity}
    told["onnxruntime"] = parity(detector, Runtime(exported), paths)
    if importlib.util.find_spec("openvino"):
        told["openvino"] = parity(detector, Runtime(exported, backend="openvino"), paths)
    for precision in ("fp16", "int8"):
        smaller = models / f"{root.name}-{precision}.onnx"
        try:
            told[precision] = export(detector, smaller, good, precision)[0].parity
            told[precision]["megabytes"] = smaller.stat().st_size / 1e6
        except ModelError as refused:
            told[precision] = {"refused": str(refused).split(": ", 1)[1]}
    told["megabytes"] = exported.stat().st_size / 1e6
    return told


def measured(code: str, backend: str, model: Path, picture: Path, threads: int) -> float:
    """What `code` prints of `backend` in a new process."""
    load = LOADED[backend].format(model=str(model), threads=threads)
    code = code.format(load=load, image=str(picture), repeats=REPEATS)
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def timings(models: Path, name: str, good: Path) -> dict[str, Any]:
    """Cold start and one image of 256 × 256, of a detector that works at that size."""
    small = models / "small"
    small.mkdir(exist_ok=True)
    paths = []
    for path in images.find(good)[:60]:
        paths.append(small / f"{path.stem}.png")
        images.save_png(images.resize(images.load(path), 256), paths[-1])
    trained, exported = models / f"{name}-256.safetensors", models / f"{name}-256.onnx"
    if not trained.exists():
        Detector().fit(paths).save(trained)
    detector = Detector.load(trained)
    export(detector, exported, paths)
    models_of = {"torch": trained, "onnxruntime": exported}
    if importlib.util.find_spec("openvino"):
        models_of["openvino"] = exported
    threads = sorted({1, os.cpu_count() or 1})
    taken: dict[str, dict[int, list[float]]] = {name: {count: [] for count in threads} for name in models_of}
    starts: dict[str, list[float]] = {name: [] for name in models_of}
    for _ in range(ROUNDS):  # the models take turns, so that all see the same load
        for name, model in models_of.items():
            starts[name].append(measured(COLD, name, model, paths[0], threads[-1]))
            for count in threads:
                taken[name][count].append(measured(WARM, name, model, paths[0], count))
    return {
        "threads": threads,
        "cold": {name: min(values) for name, values in starts.items()},
        "image": {name: [statistics.median(v) for v in by.values()] for name, by in taken.items()},
    }


def page(results: Sequence[dict[str, Any]], times: dict[str, Any]) -> str:
    lines = [
        "# The exported model against the trained one",
        "",
        "Made by `make bench-runtime DATA=…`. Detectors of the default recipe, exported in single precision, on all",
        "official test images; torch is the reference. Allowed are 1e-4 (score, relative), 1e-3 (heatmap, of its",
        "range) and no verdict that differs.",
        "",
        "| class | images | backend | score | heatmap | verdicts that differ |",
        "|---|---|---|---|---|---|",
    ]
    for told in results:
        for backend in ("onnxruntime", "openvino"):
            if backend in told:
                p = told[backend]
                measured = f"{p['score']:.1e} | {p['heatmap']:.1e} | {p['verdicts']}"
                lines.append(f"| {told['class']} | {p['images']} | {backend} | {measured} |")
    lines += [
        "",
        "## Smaller files",
        "",
        "AUROC on held-out good images against synthetic defects on them, and what the smaller file loses; a loss",
        "above 0.01 is refused. The file in single precision is first.",
        "",
        "| class | precision | MB | image AUROC | loss | pixel AUROC | loss |",
        "|---|---|---|---|---|---|---|",
    ]
    for told in results:
        lines.append(f"| {told['class']} | fp32 | {told['megabytes']:.1f} | | | | |")
        for precision in ("fp16", "int8"):
            p = told[precision]
            figures = (
                f"refused: {p['refused']} | | | | |"
                if "refused" in p
                else f"{p['megabytes']:.1f} | {p['image_auroc']:.4f} | {p['image_loss']:+.4f} | "
                f"{p['pixel_auroc']:.4f} | {p['pixel_loss']:+.4f} |"
            )
            lines.append(f"| {told['class']} | {precision} | {figures}")
    image, start = times["image"], times["cold"]
    lines += [
        "",
        "## Time",
        "",
        "From the encoded PNG of 256 × 256 to the result. Every measurement is a process of its own, the models take",
        f"turns, the median of {ROUNDS} rounds of {REPEATS} images is shown. Against torch: the faster of either.",
        "Cold start: from the import to the first answer, the best round.",
        "",
        "| | "
        + " | ".join(f"threads {count}, ms" for count in times["threads"])
        + " | against torch | cold start, s |",
        "|---|" + "---|" * len(times["threads"]) + "---|---|",
    ]
    best = {name: min(values) for name, values in image.items()}
    for name, values in image.items():
        lines.append(
            f"| {name} | "
            + " | ".join(f"{value:.1f}" for value in values)
            + f" | {best['torch'] / best[name]:.2f} × | {start[name]:.2f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of MVTec classes")
    parser.add_argument("--models", type=Path, default=Path("runs/runtime"))
    parser.add_argument("--output", type=Path, default=Path("docs/results"))
    parser.add_argument("--only-times", action="store_true", help="measure times anew, on a machine that is idle")
    options = parser.parse_args()
    options.models.mkdir(parents=True, exist_ok=True)
    classes = sorted(p for p in options.data.iterdir() if (p / "train" / "good").is_dir())
    for root in classes:
        kept = options.models / f"{root.name}.json"
        if not kept.exists() and not options.only_times:
            kept.write_text(json.dumps(job(root, options.models)))
            print(kept.read_text(), flush=True)
    times = timings(options.models, classes[0].name, classes[0] / "train" / "good")
    print(times, flush=True)
    results = [json.loads((options.models / f"{root.name}.json").read_text()) for root in classes]
    (options.output / "deployment.md").write_text(page(results, times), encoding="utf-8")


if __name__ == "__main__":
    main()
