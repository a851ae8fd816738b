"""A tiny one-class problem that a small network learns in seconds, and a script that trains on it."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import Tensor

from fcdd.data import Split
from fcdd.nn import preprocess as preprocessing
from fcdd.paper.model import PaperModel, build
from fcdd.training import loop, recipe
from fcdd.training.loop import Supply
from fcdd.training.recipe import Recipe


def stripes(count: int, vertical: bool, seed: int) -> Tensor:
    """Noisy grey stripes (N, 1, 28, 28) uint8 of random phase and contrast."""
    generator = torch.Generator().manual_seed(seed)
    phase = 6.28 * torch.rand(count, 1, 1, 1, generator=generator)
    wave = torch.sin(torch.arange(28) + phase).expand(-1, 1, 28, 28)
    contrast = 0.2 + 0.2 * torch.rand(count, 1, 1, 1, generator=generator)
    noise = 0.1 * torch.randn(count, 1, 28, 28, generator=generator)
    image = 0.5 + contrast * (wave if vertical else wave.transpose(2, 3)) + noise
    return (image.clamp(0, 1) * 255).to(torch.uint8)


def toy_split() -> Split:
    """Nominal: horizontal stripes. Anomalous: vertical ones."""
    test = torch.cat([stripes(30, False, 1), stripes(30, True, 2)])
    labels = torch.tensor([0] * 30 + [1] * 30)
    return Split("toy", stripes(64, False, 3), test, labels, ["h"] * 30 + ["v"] * 30, "made in code")


def toy_recipe(**overrides: object) -> Recipe:
    small = {"epochs": 3, "batch": 16, "lr": 0.01, "exposure": "folder:noise", "augment": "none"}
    return recipe.load("fmnist", {**small, **overrides})


def toy_training(seed: int = 0, **overrides: object) -> tuple[PaperModel, Supply]:
    """An untrained model and its batches; the auxiliary anomalies are noise, bars and other vertical stripes."""
    chosen, split = toy_recipe(**overrides), toy_split()
    torch.manual_seed(seed)
    preprocess = preprocessing.fit(chosen.preprocess, split.nominal)
    noise = torch.randint(0, 256, (40, 1, 28, 28), generator=torch.Generator().manual_seed(9), dtype=torch.uint8)
    exposure = torch.cat([noise, noise.amax(3, keepdim=True).roll(1, 0).expand_as(noise), stripes(40, True, 5)])
    model = PaperModel(build(chosen), preprocess, chosen)
    return model, loop.supply(chosen, split, exposure, preprocess)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    model, supply = toy_training(epochs=6)
    loop.train(model.network, supply, 0, folder / "checkpoint.safetensors", checkpoint_seconds=0.0, quiet=True)
    model.save(folder / "model.safetensors", 0, toy_split())
