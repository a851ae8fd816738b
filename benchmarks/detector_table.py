"""The tables of the detector's benchmark, from its runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fcdd.detector.calibration import Calibration

# Pixel AUROC that the paper reports for its unsupervised setting.
PAPER = {
    "bottle": 0.97, "cable": 0.90, "capsule": 0.93, "carpet": 0.96, "grid": 0.91, "hazelnut": 0.95, "leather": 0.98,
    "metal_nut": 0.94, "pill": 0.81, "screw": 0.86, "tile": 0.91, "toothbrush": 0.94, "transistor": 0.88,
    "wood": 0.88, "zipper": 0.92,
}  # fmt: skip
LEVEL = 0.05  # false-reject level of the checks
SPLITS = 1000

Run = dict[str, Any]


def write_table(runs: Sequence[Run], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    parts = [
        accuracy(runs, "good", "Good images only"),
        accuracy(runs, "few", "One labelled defect per type, with mask, removed from the test set"),
        qualities(runs),
        few_images(runs),
        contamination(runs),
        light(runs),
        coverage(runs),
    ]
    shown = [part for part in parts if part]  # without the tables of which nothing has run yet
    (folder / "detector.md").write_text("\n".join(["# The inspector's detector on MVTec-AD\n", INTRODUCTION, *shown]))


INTRODUCTION = """Made by `make bench-detector DATA=…` (`python benchmarks/detector.py --data MVTEC`, with `--cases` for
single tables) from the files in `runs/detector`. One recipe for all classes, the defaults of `fcdd train`; a quarter of
the good images is held out for calibration. Figures are mean ± standard deviation over seeds. Pixel figures are pooled
over all test pixels at the masks' size; the paper's pixel figure is its unsupervised one, at 224 px, in both tables.
Images are the official ones at 384 pixels, grid at 640 and without its `thread` defects.

**How the recipe was chosen**, and what it gives on a class that took no part in the choice: [choice.md](choice.md).

**Times** are training with calibration, and `Detector.inspect` from files, on one thread of a busy machine.
"""


def accuracy(runs: Sequence[Run], case: str, title: str) -> str:
    lines = [
        f"\n## {title}\n",
        "| class | image AUROC | pixel AUROC | paper's pixel | AUPRO | training, s | images/s |",
        "|---|---|---|---|---|---|---|",
    ]
    chosen = [r for r in runs if r["case"] == case]
    classes = sorted({r["class"] for r in chosen})
    if not classes:
        return ""
    for name in classes:
        own = [r for r in chosen if r["class"] == name]
        cells = [spread([r[key] for r in own]) for key in KEYS]
        seconds, rate = min(r["train_seconds"] for r in own), max(r["images_per_second"] for r in own)
        lines.append(
            f"| {name} | {cells[0]} | {cells[1]} | {PAPER.get(name, math.nan):.2f} | {cells[2]} "
            f"| {seconds:.0f} | {rate:.1f} |"
        )
    means = [_over_classes(chosen, classes, key) for key in KEYS]
    paper = np.mean([PAPER[c] for c in classes if c in PAPER])
    lines.append(f"| **mean** | **{means[0]:.4f}** | **{means[1]:.4f}** | {paper:.2f} | {means[2]:.4f} | | |")
    seeds = sorted({r["seed"] for r in chosen})
    lines.append(f"\nSeeds {', '.join(map(str, seeds))}.")
    return "\n".join(lines)


def qualities(runs: Sequence[Run]) -> str:
    """The three qualities on the seed that all have."""
    known = {run["case"] for run in runs}
    names = {case: name for case, name in (("fast", "fast"), ("good", "standard"), ("fine", "fine")) if case in known}
    if len(names) == 1:
        return ""
    return _beside(
        runs,
        names,
        "The qualities (seed 0)",
        "Image / pixel AUROC, and images/s from files; other work ran beside some runs, so compare speeds with care.",
        speed=True,
    )


def few_images(runs: Sequence[Run]) -> str:
    """What few good images cost in accuracy, and in promise."""
    names = {"images-10": "10", "images-20": "20", "images-50": "50", "good": "all"}
    about = (
        "Image / pixel AUROC. A quarter of the images is for calibration: the least false-reject level that it can "
        "promise is 25 % from 10 images, 17 % from 20 and 7.1 % from 50."
    )
    return _beside(runs, names, "Few good images (seed 0)", about)


def contamination(runs: Sequence[Run]) -> str:
    """What defects among the good images cost."""
    names = {"good": "clean", "contaminated": "5 % defects among the good images"}
    about = "Image / pixel AUROC. The defects come from the test set, which they leave; nothing says which they are."
    chosen = [run for run in runs if run["case"] == "contaminated"]
    if not chosen:
        return ""
    counts = [f"{r['class']} {r['suspects']['found']} of {r['suspects']['hidden']}" for r in chosen]
    wrong = sum(run["suspects"]["named"] - run["suspects"]["found"] for run in chosen)
    told = (
        f"\n\nHidden defects that `fcdd check GOOD --against MODEL` names afterwards, with the very model that learnt "
        f"from them: {', '.join(counts)}; good images that it names beside them: {wrong}."
    )
    return _beside(runs, names, "Contaminated training sets (seed 0)", about) + told


def _beside(runs: Sequence[Run], names: dict[str, str], title: str, about: str, speed: bool = False) -> str:
    """A column a case, for the classes that all of them ran on."""
    known = {(r["case"], r["class"]): r for r in runs if r["seed"] == 0}
    classes = [c for c in sorted({r["class"] for r in runs}) if all((case, c) in known for case in names)]
    if not classes:
        return ""
    lines = [f"\n## {title}\n", about + "\n", "| class | " + " | ".join(names.values()) + " |"]
    lines.append("|---" * (len(names) + 1) + "|")
    for name in classes:
        cells = []
        for case in names:
            run = known[case, name]
            rate = f", {run['images_per_second']:.1f}/s" if speed else ""
            cells.append(f"{run['image_auroc']:.4f} / {run['pixel_auroc']:.4f}{rate}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    means = [
        " / ".join(f"{_over_classes([known[case, c] for c in classes], classes, key):.4f}" for key in KEYS[:2])
        for case in names
    ]
    lines.append("| **mean** | " + " | ".join(means) + " |")
    return "\n".join(lines)


def _over_classes(runs: Sequence[Run], classes: Sequence[str], key: str) -> float:
    return float(np.mean([_mean([r for r in runs if r["class"] == c], key) for c in classes]))


KEYS = ("image_auroc", "pixel_auroc", "aupro")


def light(runs: Sequence[Run]) -> str:
    """Other light: AUROC lost, and false rejects at the level the calibration promises."""
    chosen = [r for r in runs if "light" in r]
    names = list(chosen[0]["light"]) if chosen else []
    lines = [
        "\n## Other light on the same test images (seed 0)\n",
        f"Image AUROC under the lamp's own light and under others, and in brackets the good images rejected at a level "
        f"of {LEVEL:.0%}.\n",
        "| class | as it is | " + " | ".join(names) + " |",
        "|---" * (len(names) + 2) + "|",
    ]
    totals = []
    for name in sorted({r["class"] for r in chosen}):
        own = [r for r in chosen if r["class"] == name]
        row = [(np.mean([r["image_auroc"] for r in own]), np.mean([rejects(r, r["good"]) for r in own]))]
        for lamp in names:
            auroc = np.mean([r["light"][lamp]["image_auroc"] for r in own])
            row.append((auroc, np.mean([rejects(r, r["light"][lamp]["good"]) for r in own])))
        totals.append(row)
        lines.append(f"| {name} | " + " | ".join(f"{a:.4f} ({f:.0%})" for a, f in row) + " |")
    means = np.mean(totals, 0)
    lines.append("| **mean** | " + " | ".join(f"{a:.4f} ({f:.1%})" for a, f in means) + " |")
    return "\n".join(lines)


def rejects(run: Run, scores: Sequence[float]) -> float:
    """Share of good images above the threshold that the run's calibration sets for LEVEL."""
    return float(np.mean(np.array(scores) > Calibration(tuple(run["calibration"])).threshold(LEVEL)))


def coverage(runs: Sequence[Run]) -> str:
    """False rejects on images the calibration never saw."""
    lines = [
        "\n## Is the promise kept?\n",
        f"The promised level is {LEVEL:.0%}. *Random splits*: the held-out good images are split at random {SPLITS} "
        "times into a calibration and a check half; the mean rate should be what conformal prediction expects. *Good "
        "test images*: how many of the official ones each seed rejects; they were taken apart and partly in other "
        "light. The interval is the 95 % binomial one around the level for one seed. Seeds share their test images, so "
        "their counts must not be added up: a class that is high in every seed is high once, not three times.\n",
        "| class | random splits: mean rate | expected | good test images rejected, by seed | of | 95 % interval |",
        "|---|---|---|---|---|---|",
    ]
    chosen = [r for r in runs if r["case"] == "good"]
    sums, images = np.zeros(len({r["seed"] for r in chosen}), int), 0
    for name in sorted({r["class"] for r in chosen}):
        own = sorted((r for r in chosen if r["class"] == name), key=lambda r: r["seed"])
        rates, expected = zip(*[split_rate(r["calibration"], r["seed"]) for r in own], strict=True)
        rejected = np.array([round(rejects(r, r["good"]) * len(r["good"])) for r in own])
        total = len(own[0]["good"])
        low, high = interval(total, LEVEL)
        counts = ", ".join(map(str, rejected))
        sums, images = sums + rejected, images + total
        lines.append(
            f"| {name} | {np.mean(rates):.3f} | {np.mean(expected):.3f} | {counts} | {total} | {low} to {high} |"
        )
    low, high = interval(images, LEVEL)
    lines.append(f"| **all** | | | {', '.join(map(str, sums))} | {images} | {low} to {high} |")
    return "\n".join(lines) + "\n"


def split_rate(scores: Sequence[float], seed: int) -> tuple[float, float]:
    """Mean false-reject rate over random halves, and what conformal prediction expects: ⌊α(n+1)⌋/(n+1)."""
    random, values = np.random.default_rng(seed), np.array(scores)
    half = len(values) // 2
    rates = []
    for _ in range(SPLITS):
        order = random.permutation(len(values))
        limit = Calibration(tuple(values[order[:half]])).threshold(LEVEL)
        rates.append(np.mean(values[order[half:]] > limit))
    return float(np.mean(rates)), math.floor(LEVEL * (half + 1)) / (half + 1)


def interval(trials: int, rate: float) -> tuple[int, int]:
    """Central 95 % of a binomial count."""
    logs = [
        math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1)
        + k * math.log(rate) + (trials - k) * math.log1p(-rate)
        for k in range(trials + 1)
    ]  # fmt: skip
    below = np.cumsum(np.exp(logs))
    return int(np.searchsorted(below, 0.025)), int(np.searchsorted(below, 0.975))


def spread(values: Sequence[float]) -> str:
    return f"{np.mean(values):.4f} ± {np.std(values):.4f}"


def _mean(runs: Sequence[Run], key: str) -> float:
    return float(np.mean([r[key] for r in runs]))
