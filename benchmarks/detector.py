"""Accuracy, trust and speed of the inspector's detector on MVTec-AD: `make bench-detector DATA=…`.

One recipe for all classes, in several cases: good images only; with one labelled defect a type, which leaves the test
set; with few good images; with defects among the good images; in the other qualities; and the same test images under
other light. Every run is kept as a small file, so that a stopped benchmark goes on and nothing is run twice; the tables
are written from those files.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from detector_table import write_table
from numpy.typing import NDArray

from fcdd import folders, images, metrics
from fcdd.check.suspects import suspected
from fcdd.detector.detector import Detector
from fcdd.detector.settings import Settings

Pixels = NDArray[np.uint8]
LIGHTS = {
    "20 % darker": (0.8, 0.8, 0.8),
    "7 % darker": (0.93, 0.93, 0.93),
    "7 % brighter": (1.07, 1.07, 1.07),
    "20 % brighter": (1.2, 1.2, 1.2),
    "warmer": (1.1, 1.0, 0.9),
    "cooler": (0.9, 1.0, 1.1),
}


@dataclass(frozen=True)
class Case:
    """What a run learns from, and how."""

    few: bool = False  # one labelled defect of each type, with its mask
    images: int = 0  # so many good images; 0 for all
    contaminated: float = 0.0  # share of defects among the good images
    quality: str = Settings.quality
    method: str = Settings.method
    light: bool = False  # also under other light
    seeds: int = 1


CASES = {
    "good": Case(light=True, seeds=3),
    "few": Case(few=True, seeds=3),
    "fast": Case(quality="fast"),
    "fine": Case(quality="fine"),
    "images-10": Case(images=10),
    "images-20": Case(images=20),
    "images-50": Case(images=50),
    "contaminated": Case(contaminated=0.05),
}


def relight(image: Pixels, gains: tuple[float, float, float]) -> Pixels:
    lit: Pixels = np.clip(np.round(image * np.array(gains)), 0, 255).astype(np.uint8)
    return lit


def labelled(kinds: list[str], case: Case, good: int, seed: int) -> list[int]:
    """Test images that training takes: one of each defect type, or those that hide among the good ones."""
    random = np.random.default_rng(seed)
    if case.contaminated:
        bad = [i for i, kind in enumerate(kinds) if kind != "good"]
        return sorted(random.choice(bad, round(case.contaminated * good), replace=False).tolist())
    if not case.few:
        return []
    return [int(random.choice([i for i, k in enumerate(kinds) if k == kind])) for kind in sorted(set(kinds) - {"good"})]


def job(root: Path, seed: int, case: Case) -> dict[str, Any]:
    """Train and measure one detector."""
    good, test = images.find(root / "train" / "good"), folders.read_test(root)
    if case.images:
        chosen_good = np.random.default_rng(seed).permutation(len(good))[: case.images]
        good = [good[i] for i in sorted(chosen_good)]
    chosen = labelled(test.kinds, case, len(good), seed)
    masks = [test.mask_paths[i] for i in chosen]
    begun = time.perf_counter()
    detector = Detector(Settings(method=case.method, quality=case.quality), seed=seed).fit(
        [*good, *(test.paths[i] for i in chosen)] if case.contaminated else good,
        [test.paths[i] for i in chosen] if case.few else None,
        [None if path is None else images.load_mask(path) for path in masks] if case.few else None,
    )
    training = time.perf_counter() - begun
    rest = [i for i in range(len(test.paths)) if i not in chosen]
    told = measured(detector, test, rest)
    told |= {"class": root.name, "seed": seed, "few": case.few, "train_seconds": training}
    told |= {"memory_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}
    if case.contaminated:
        found = suspected(detector, [*good, *(test.paths[i] for i in chosen)])
        told["suspects"] = {"hidden": len(chosen), "found": sum(at >= len(good) for at in found), "named": len(found)}
    if case.light and seed == 0:
        told["light"] = lights(detector, [images.load(test.paths[i]) for i in rest], [test.labels[i] for i in rest])
    return told


def measured(detector: Detector, test: folders.Labelled, rest: list[int]) -> dict[str, Any]:
    """AUROC of images and pixels, AUPRO, speed, and the scores that tell whether the promise is kept."""
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
    return {
        "image_auroc": metrics.auroc(scores, labels),
        "pixel_auroc": pixel.auroc(),
        "aupro": aupro.aupro(),
        "images_per_second": len(rest) / predicting,
        "calibration": _short(detector.calibration.scores),
        "good": _short([s for s, y in zip(scores, labels, strict=True) if y == 0]),
    }


def lights(detector: Detector, arrays: list[Pixels], labels: list[int]) -> dict[str, Any]:
    """Image AUROC and scores of good images under other lamps."""
    told = {}
    for name, gains in LIGHTS.items():
        lit = detector.score_samples([relight(array, gains) for array in arrays])
        good = [score for score, label in zip(lit.tolist(), labels, strict=True) if label == 0]
        told[name] = {"image_auroc": metrics.auroc(lit, labels), "good": _short(good)}
    return told


def _short(scores: Any) -> list[float]:
    return [float(f"{score:.6g}") for score in scores]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of MVTec classes")
    parser.add_argument("--output", type=Path, default=Path("docs/results"))
    parser.add_argument("--runs", type=Path, default=Path("docs/results/runs/detector"))
    parser.add_argument("--classes", nargs="*")
    parser.add_argument("--cases", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--seeds", type=int, nargs="*", help="those alone, of the seeds that a case has")
    options = parser.parse_args()
    classes = options.classes or sorted(p.name for p in options.data.iterdir() if (p / "train").is_dir())
    options.runs.mkdir(parents=True, exist_ok=True)
    wanted = [(case, seed, name) for case in options.cases for seed in range(CASES[case].seeds) for name in classes]
    for case, seed, name in wanted:
        path = options.runs / f"{case}-{name}-{seed}.json"
        if path.exists() or seed not in (options.seeds or [seed]):
            continue
        told = {"case": case, **job(options.data / name, seed, CASES[case])}
        path.write_text(json.dumps(told))
        print(
            f"{path.stem}: image {told['image_auroc']:.4f} pixel {told['pixel_auroc']:.4f} "
            f"train {told['train_seconds']:.0f} s, {told['images_per_second']:.1f} images/s",
            flush=True,
        )
    write_table([json.loads(p.read_text()) for p in sorted(options.runs.glob("*.json"))], options.output)


if __name__ == "__main__":
    main()
