"""Rate and passes of short MVTec-AD runs, chosen without test images.

A quarter of the good training images is held out; each is scored as it is and with a scratch, stain, pasted patch or
foreign texture, which training (on confetti) never sees. The setting with the best mean pixel AUC over classes is the
one to use: `python benchmarks/paper_choice.py --data DATA --weights FILE --network vgg16`.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import torch
from torch import Tensor

from fcdd.anomalies import synthetic
from fcdd.data import DATASETS, Split, Subset
from fcdd.files import write_atomically
from fcdd.paper.model import evaluate
from fcdd.paper.run import Job, start
from fcdd.seeds import generator_of
from fcdd.training import loop
from fcdd.training import recipe as recipes

RATES, PASSES = (0.003, 0.01, 0.03), (2, 6)
HELD_OUT = 4  # one of so many good images
MOST = 32  # images held out, at most


def defective(split: Split, held: Tensor, seed: int) -> Split:
    """The held-out good images, as they are and with synthetic defects, as a test set with masks."""
    good = split.nominal[held].float() / 255
    bad, masks = synthetic.mixture(good, generator_of(seed, "choice"), kinds=synthetic.LOCAL)
    truth = torch.cat([torch.zeros_like(masks), masks])[:, 0].bool().numpy()
    return Split(
        name=split.name,
        nominal=split.nominal,
        test=(torch.cat([good, bad]) * 255).round().byte(),
        labels=torch.tensor([0] * len(good) + [1] * len(bad)),
        kinds=["good"] * len(good) + ["synthetic"] * len(bad),
        provenance=split.provenance,
        mask=lambda index: truth[index],
    )


def measure(job: Job) -> dict[str, float | None]:
    """Train on three quarters of the good images, score the rest."""
    model, supply, split, _ = start(job)
    order = torch.randperm(len(split.nominal), generator=generator_of(job.seed, "held out"))
    held = order[: min(MOST, len(order) // HELD_OUT)]
    loop.train(model.network, replace(supply, nominal=Subset(split.nominal, order[len(held) :])), job.seed, quiet=True)
    found = evaluate(model, defective(split, held, job.seed), quiet=True)
    return {"image": found.image_auroc, "pixel": found.pixel_auroc_mean, "pooled": found.pixel_auroc}


def main() -> None:
    """Measure what is missing in the output folder, then print the means over classes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--network", default="vgg11")
    parser.add_argument("--freeze", type=int, default=3)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--output", type=Path, default=Path("docs/results/runs/paper-choice"))
    chosen = parser.parse_args()
    shared = {"network": chosen.network, "freeze": chosen.freeze, "batch": chosen.batch}
    classes = DATASETS["mvtec"].present(chosen.data)
    for normal, lr, passes in product(classes, RATES, PASSES):
        path = chosen.output / f"{normal}-lr{lr}-passes{passes}.json"
        if path.is_file():
            continue
        recipe = recipes.load("mvtec", {**shared, "lr": lr, "passes": passes}).shortened(1)
        job = Job(recipe, normal, chosen.data, 0, chosen.weights, chosen.weights is None)
        record = {"class": normal, "lr": lr, "passes": passes, **shared, **measure(job)}
        write_atomically(path, json.dumps(record).encode())
    records = [json.loads(path.read_text()) for path in sorted(chosen.output.glob("*.json"))]
    print("| rate | passes | classes | pixel AUC, mean over images | pooled | image AUC |\n|---|---|---|---|---|---|")
    for lr, passes in product(RATES, PASSES):
        own = [record for record in records if (record["lr"], record["passes"]) == (lr, passes)]
        means = [sum(record[name] for record in own) / max(len(own), 1) for name in ("pixel", "pooled", "image")]
        print(f"| {lr} | {passes} | {len(own)} | {' | '.join(f'{mean:.4f}' for mean in means)} |")


if __name__ == "__main__":
    main()
