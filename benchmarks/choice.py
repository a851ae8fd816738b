"""What the parts of the default recipe count, and what that is worth on a class left out.

For every class one detector is trained, and the maps of its parts are kept. Each candidate, a set of shares,
adds them up and is judged on the test images. For each class the candidate that is best on all the others is taken and
judged on it: that is what a class may expect that took no part in the choice. Every class is kept as a small file.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fcdd import folders, images, metrics
from fcdd.data.sources import Images
from fcdd.detector.detector import Detector
from fcdd.detector.result import score_of
from fcdd.training.learners import total

Map = NDArray[np.float32]
CANDIDATES = {
    "planes alone": (1.0, 0.0, 0.0),
    "centres alone": (0.0, 1.0, 0.0),
    "head alone": (0.0, 0.0, 1.0),
    "planes and centres": (1.25, 1.0, 0.0),
    "planes and head": (1.25, 0.0, 0.15),
    "centres and head": (0.0, 1.0, 0.15),
    "1 : 1 : 0.15": (1.0, 1.0, 0.15),
    "**1.25 : 1 : 0.15**": (1.25, 1.0, 0.15),
    "1.5 : 1 : 0.15": (1.5, 1.0, 0.15),
    "2 : 1 : 0.15": (2.0, 1.0, 0.15),
    "1.25 : 1 : 0.1": (1.25, 1.0, 0.1),
    "1.25 : 1 : 0.3": (1.25, 1.0, 0.3),
    "1.25 : 1 : 1": (1.25, 1.0, 1.0),
}
OWN = "**1.25 : 1 : 0.15**"
MARK = "<!-- Below: written by benchmarks/choice.py -->\n"


@torch.inference_mode()
def maps_of(detector: Detector, paths: list[Path]) -> dict[str, Map]:
    """The cells (N, h, w) of each part."""
    source = Images(paths, detector.grid.shape)
    network = detector.network
    found: list[dict[str, Map]] = []
    for index in torch.arange(len(paths)).split(4):
        parts = network.maps(source[index].float())  # type: ignore[operator]
        found.append({name: cells[:, 0].numpy() for name, cells in parts.items()})
    return {name: np.concatenate([part[name] for part in found]) for name in found[0]}


def job(root: Path) -> dict[str, Any]:
    """Image and pixel AUROC of every candidate on one class."""
    good, test = images.find(root / "train" / "good"), folders.read_test(root)
    detector = Detector().fit(good)
    maps = maps_of(detector, test.paths)
    names = list(detector.network.PARTS)  # type: ignore[arg-type]
    weights = detector.network.weights.numpy() / np.array([total.SHARES[name] for name in names])  # type: ignore[operator]
    masks = [None if path is None else images.load_mask(path) for path in test.mask_paths]
    told: dict[str, Any] = {"class": root.name}
    for title, shares in CANDIDATES.items():
        cells = sum(s * w * maps[name] for s, w, name in zip(shares, weights, names, strict=True))
        pixel = metrics.PixelHistogram()
        for one, mask in zip(cells, masks, strict=True):
            shape = detector.grid.shape if mask is None else (mask.shape[0], mask.shape[1])
            pixel.update(detector.grid.heatmap(one, shape), np.zeros(shape, np.bool_) if mask is None else mask)
        scores = [score_of(one, detector.inside, detector.top) for one in cells]
        told[title] = [round(metrics.auroc(scores, test.labels), 5), round(pixel.auroc(), 5)]
    return told


def page(runs: list[dict[str, Any]]) -> str:
    """All candidates, and what the best on the other classes gives on a class."""
    classes = [run["class"] for run in runs]
    lines = ["## Shares\n", "| planes : centres : head | mean | " + " | ".join(classes) + " |"]
    lines.append("|---" * (len(classes) + 2) + "|")
    for title in CANDIDATES:
        figures = np.array([run[title] for run in runs])
        cells = " | ".join(f"{a:.3f} / {b:.3f}" for a, b in figures)
        lines.append(f"| {title} | {figures[:, 0].mean():.4f} / {figures[:, 1].mean():.4f} | {cells} |")
    lines += ["\n## Classes left out in turn\n", "| class left out | best on the others | on it | the recipe on it |"]
    lines.append("|---|---|---|---|")
    found = []
    for run in runs:
        others = [other for other in runs if other is not run]
        best = max(CANDIDATES, key=lambda title: float(np.mean([sum(other[title]) for other in others])))
        found.append(run[best])
        own = run[OWN]
        lines.append(
            f"| {run['class']} | {best.strip('*')} | {run[best][0]:.4f} / {run[best][1]:.4f} "
            f"| {own[0]:.4f} / {own[1]:.4f} |"
        )
    out, own = np.mean(found, 0), np.mean([run[OWN] for run in runs], 0)
    lines.append(f"| **mean** | | **{out[0]:.4f} / {out[1]:.4f}** | **{own[0]:.4f} / {own[1]:.4f}** |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of MVTec classes")
    parser.add_argument("--output", type=Path, default=Path("docs/results"))
    parser.add_argument("--classes", nargs="*")
    options = parser.parse_args()
    kept = options.output / "runs" / "choice"
    kept.mkdir(parents=True, exist_ok=True)
    for name in options.classes or sorted(p.name for p in options.data.iterdir() if (p / "train").is_dir()):
        path = kept / f"{name}.json"
        if not path.exists():
            path.write_text(json.dumps(job(options.data / name)))
            print(name, json.loads(path.read_text())[OWN], flush=True)
    runs = [json.loads(path.read_text()) for path in sorted(kept.glob("*.json"))]
    target = options.output / "choice.md"
    # What the decisions rest on is written by hand, above the mark.
    target.write_text(target.read_text().partition(MARK)[0] + MARK + "\n" + page(runs))


if __name__ == "__main__":
    main()
