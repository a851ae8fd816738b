"""How the detector's recipe was chosen, without its test labels: `python benchmarks/choice.py --data DATA`.

Two ways, side by side. *Synthetic*: good training images held out from the fit get scratches, stains, pasted patches
and foreign texture; a variant is judged by how well it tells them from the untouched ones. *Left out*: for every class
the variant is taken that is best on the test images of the other classes; its figure on the class left out is what a
new class may expect of such a choice. Every result is kept as one JSON file, so a stopped run goes on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from choice_table import write_table
from numpy.typing import NDArray
from torch import Tensor

from fcdd import folders, images, metrics
from fcdd.anomalies import synthetic
from fcdd.data.sources import Images
from fcdd.detector.result import Grid, score_of
from fcdd.detector.settings import Settings
from fcdd.nn import planes as planes_module
from fcdd.nn.architecture import Architecture
from fcdd.nn.description import Description
from fcdd.nn.planes import Planes
from fcdd.nn.trunks import Block, LiteTrunk
from fcdd.seeds import generator_of
from fcdd.training import bank
from fcdd.training.learners import LEARNERS

KINDS: dict[str, Callable[..., tuple[Tensor, Tensor]]] = {name: synthetic.KINDS[name] for name in synthetic.LOCAL}
HELD = 30  # good images that get defects, of those that the fit holds out
TOPS = (0.001, 0.003, 0.01, 0.03, 0.1, 1.0)
SIGMAS = (4.0, 8.0, 12.0, 16.0)


@dataclass(frozen=True)
class Variant:
    """What is chosen among; the defaults are where the choice started."""

    size: int = LEARNERS["nominal"].largest
    taps: tuple[int, ...] = (2, 4, 7, 10)
    planes: int = Architecture.planes
    directions: int = Architecture.directions
    shrink: float = 0.03
    scatter: float = planes_module.SCATTER

    def __str__(self) -> str:
        changed = [f"{k} {v}" for k, v in asdict(self).items() if v != getattr(Variant(), k)]
        return ", ".join(changed) or "start"


def variants() -> list[Variant]:
    """The start, and each of its values changed alone."""
    base = Variant()
    changes: list[dict[str, Any]] = [{}]
    changes += [{"taps": taps} for taps in ((2, 4, 10), (4, 7, 10), (4, 10))]
    changes += [{"planes": p, "directions": d} for p, d in ((1, 128), (16, 32), (64, 1), (64, 16), (256, 16))]
    changes += [{"shrink": s} for s in (0.003, 0.01, 0.1, 0.3)]
    changes += [{"scatter": s} for s in (0.0, 0.5, 1.0)]
    changes += [{"size": 256}, {"size": 320}]
    return [replace(base, **change) for change in changes]


@dataclass(frozen=True)
class Pictures:
    """One picture set: images (N, 3, H, W) uint8, masks (N, H, W) bool, and what each shows."""

    name: str
    pixels: Tensor
    masks: NDArray[np.bool_]
    kinds: list[str]


def sets_of(root: Path, size: int, held: list[Path]) -> Iterator[Pictures]:
    """The held-out good images with each synthetic defect, and the official test images."""
    clean = Images(held, (size, size))[torch.arange(len(held))]
    parts, masks, kinds = [clean], [np.zeros((len(held), size, size), np.bool_)], ["good"] * len(held)
    for kind, make in KINDS.items():
        changed, mask = make(clean.float() / 255, generator_of(0, root.name, kind))
        parts.append((changed * 255).round().to(torch.uint8))
        masks.append(mask[:, 0].numpy().astype(np.bool_))
        kinds += [kind] * len(held)
    yield Pictures("synthetic", torch.cat(parts), np.concatenate(masks), kinds)
    test = folders.read_test(root)
    truth = np.zeros((len(test.paths), size, size), np.bool_)
    for i, path in enumerate(test.mask_paths):
        if path:
            truth[i] = images.resize(images.load_mask(path).astype(np.uint8) * 255, (size, size)) > 127
    pixels = Images(test.paths, (size, size))[torch.arange(len(test.paths))]
    yield Pictures("test", pixels, truth, ["good" if y == 0 else "defect" for y in test.labels])


@torch.inference_mode()
def features_of(description: Description, pixels: Tensor) -> Tensor:
    """(N, C, h, w) in half precision."""
    return torch.cat([description.features(part.float()).half() for part in pixels.split(4)])


@torch.inference_mode()
def judge(
    description: Description, features: Tensor, channels: Tensor, pictures: Pictures, grid: Grid
) -> dict[str, Any]:
    """Image AUROC by share of the strongest cells, pixel AUROC by sigma; means over the kinds of defect."""
    maps = torch.cat([description.describe(part[:, channels].float()) for part in features.split(8)])[:, 0].numpy()
    inside = np.ones(maps.shape[1:], np.bool_)
    kinds = np.array(pictures.kinds)
    told: dict[str, Any] = {"image": {}, "pixel": {}}
    for top in TOPS:
        scores = np.array([score_of(cells, inside, top) for cells in maps])
        told["image"][top] = {
            k: metrics.auroc(scores[(kinds == k) | (kinds == "good")], (kinds == k)[(kinds == k) | (kinds == "good")])
            for k in sorted(set(kinds) - {"good"})
        }
    for sigma in SIGMAS:
        blurred = replace(grid, sigma=sigma)
        pixel = metrics.PixelHistogram()
        for cells, mask in zip(maps, pictures.masks, strict=True):
            pixel.update(blurred.heatmap(cells, mask.shape), mask)
        told["pixel"][sigma] = pixel.auroc()
    return told


def study(root: Path, size: int, wanted: list[Variant], runs: Path) -> None:
    """All variants of one class at one size; the trunk runs once."""
    paths = {v: runs / f"{root.name}-{str(v).replace(' ', '').replace('(', '').replace(')', '')}.json" for v in wanted}
    wanted = [v for v in wanted if not paths[v].exists()]
    if not wanted:
        return
    good = images.find(root / "train" / "good")
    order = torch.randperm(len(good), generator=generator_of(0, "choice")).tolist()
    held, kept = sorted(order[:HELD]), sorted(order[len(good) // 4 :])
    base = Description(Architecture()).eval()
    base.trunk.load()
    training = Images([good[i] for i in kept], (size, size))
    base.fit_light(training[torch.arange(0, len(kept), max(1, len(kept) // 64))].float())
    cells = size // base.field.stride
    vectors = bank.gather(base, training, torch.ones(cells**2, dtype=torch.bool), Settings.vectors, 0)
    shown = [(p, features_of(base, p.pixels)) for p in sets_of(root, size, [good[i] for i in held])]
    grid = Grid((size, size), base.field.stride, base.field.start, base.sigma)
    for variant in wanted:
        told = {"class": root.name, "variant": str(variant), **fitted(base, variant, vectors, shown, grid)}
        paths[variant].write_text(json.dumps(told))
        best = {
            name: (np.mean(list(told[name]["image"][0.01].values())), told[name]["pixel"][8.0])
            for name in ("synthetic", "test")
        }
        print(f"{root.name} {variant}: " + "  ".join(f"{k} {a:.4f} {b:.4f}" for k, (a, b) in best.items()), flush=True)


def fitted(
    base: Description, variant: Variant, vectors: Tensor, shown: list[tuple[Pictures, Tensor]], grid: Grid
) -> dict[str, Any]:
    """Fit one variant on the bank and judge it on every set."""
    trunk = base.trunk
    assert isinstance(trunk, LiteTrunk)
    channels, start = [], 0
    for tap in trunk.taps:
        block = trunk.blocks[tap]
        assert isinstance(block, Block)
        width = block.project.conv.out_channels
        channels += list(range(start, start + width)) if tap in variant.taps else []
        start += width
    chosen = torch.tensor(channels)
    planes_module.SHRINK, planes_module.SCATTER = variant.shrink, variant.scatter
    description = Description(Architecture(planes=variant.planes, directions=variant.directions)).eval()
    description.whiten = planes_module.Whiten(len(channels))
    description.planes = Planes(variant.planes, variant.directions, len(channels))
    description.fit(vectors[:, chosen], generator_of(0, "planes"))
    return {p.name: judge(description, features, chosen, p, grid) for p, features in shown}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of MVTec classes")
    parser.add_argument("--runs", type=Path, default=Path("runs/choice"))
    parser.add_argument("--output", type=Path, default=Path("docs/results"))
    parser.add_argument("--classes", nargs="*")
    options = parser.parse_args()
    options.runs.mkdir(parents=True, exist_ok=True)
    classes = options.classes or sorted(p.name for p in options.data.iterdir() if (p / "train").is_dir())
    every = variants()
    for size in sorted({v.size for v in every}, reverse=True):
        for name in classes:
            study(options.data / name, size, [v for v in every if v.size == size], options.runs)
    write_table([json.loads(p.read_text()) for p in sorted(options.runs.glob("*.json"))], options.output)


if __name__ == "__main__":
    main()
