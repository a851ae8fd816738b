"""Accuracy, trust and speed of the inspector's detector on MVTec-AD: `make bench-detector DATA=…`.

Good images only, and with one labelled defect per type (which leaves the test set); several seeds; the same test
images under other light; false rejects on images that the calibration never saw. Every run is kept as one JSON file,
so a stopped benchmark goes on; the table is written from those files.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
from detector_table import write_table
from numpy.typing import NDArray

from fcdd import folders, images, metrics
from fcdd.detector.detector import Detector
from fcdd.detector.settings import Settings

Pixels = NDArray[np.uint8]
LIGHTS = {
    "darker": (0.93, 0.93, 0.93),
    "brighter": (1.07, 1.07, 1.07),
    "warmer": (1.04, 1.0, 0.96),
    "cooler": (0.96, 1.0, 1.04),
    "redder": (1.07, 1.0, 1.0),
    "bluer": (1.0, 1.0, 1.07),
}


def relight(picture: Pixels, gains: tuple[float, float, float]) -> Pixels:
    lit: Pixels = np.clip(np.round(picture * np.array(gains)), 0, 255).astype(np.uint8)
    return lit


def choose(kinds: list[str], seed: int) -> list[int]:
    """One test image of each defect type."""
    random = np.random.default_rng(seed)
    return [int(random.choice([i for i, k in enumerate(kinds) if k == kind])) for kind in sorted(set(kinds) - {"good"})]


def job(root: Path, seed: int, few: bool, method: str = Settings.method) -> dict[str, Any]:
    """Train and measure one detector."""
    good, test = images.find(root / "train" / "good"), folders.read_test(root)
    chosen = choose(test.kinds, seed) if few else []
    begun = time.perf_counter()
    detector = Detector(Settings(method=method), seed=seed).fit(
        good,
        [test.paths[i] for i in chosen] or None,
        [images.load_mask(path) for i in chosen if (path := test.mask_paths[i])] or None,
    )
    training = time.perf_counter() - begun
    rest = [i for i in range(len(test.paths)) if i not in chosen]
    labels = np.array([test.labels[i] for i in rest])
    pixel, aupro, scores = metrics.PixelHistogram(), metrics.Aupro(), []
    begun = time.perf_counter()
    results = [result for _, result in detector.inspect([test.paths[i] for i in rest])]
    predicting = time.perf_counter() - begun
    for i, result in zip(rest, results, strict=True):
        path = test.mask_paths[i]
        mask = images.load_mask(path) if path else np.zeros(result.heatmap.shape, np.bool_)
        pixel.update(result.heatmap, mask)
        aupro.update(result.heatmap, mask)
        scores.append(result.score)
    told: dict[str, Any] = {
        "class": root.name,
        "seed": seed,
        "few": few,
        "image_auroc": metrics.auroc(scores, labels),
        "pixel_auroc": pixel.auroc(),
        "aupro": aupro.aupro(),
        "train_seconds": training,
        "images_per_second": len(rest) / predicting,
        "calibration": list(detector.calibration.scores),
        "good": [s for s, y in zip(scores, labels, strict=True) if y == 0],
        "memory_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }
    if not few and seed == 0 and method == Settings.method:
        arrays = [images.load(test.paths[i]) for i in rest]
        told["light"] = {}
        for name, gains in LIGHTS.items():
            lit = detector.score_samples([relight(array, gains) for array in arrays])
            told["light"][name] = {"image_auroc": metrics.auroc(lit, labels), "good": lit[labels == 0].tolist()}
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of MVTec classes")
    parser.add_argument("--output", type=Path, default=Path("docs/results"))
    parser.add_argument("--runs", type=Path, default=Path("runs/detector"))
    parser.add_argument("--classes", nargs="*")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    classes = options.classes or sorted(p.name for p in options.data.iterdir() if (p / "train").is_dir())
    options.runs.mkdir(parents=True, exist_ok=True)
    for seed in range(options.seeds):
        for few in (False, True):
            for name in classes:
                path = options.runs / f"{name}-{'few' if few else 'good'}-{seed}.json"
                if not path.exists():
                    told = job(options.data / name, seed, few)
                    path.write_text(json.dumps(told))
                    print(
                        f"{path.stem}: image {told['image_auroc']:.4f} pixel {told['pixel_auroc']:.4f} "
                        f"train {told['train_seconds']:.0f} s, {told['images_per_second']:.1f} images/s",
                        flush=True,
                    )
    write_table([json.loads(p.read_text()) for p in sorted(options.runs.glob("*.json"))], options.output)


if __name__ == "__main__":
    main()
