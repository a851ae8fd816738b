"""The bank: a bounded sample of nominal features, gathered in one pass of the frozen trunk that survives a kill."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from fcdd.data import Source
from fcdd.data.views import relit
from fcdd.interrupt import Interrupted, stop_on_signal
from fcdd.nn.centres import POOL, REST, places
from fcdd.nn.description import Description, coarse_side
from fcdd.progress import bar
from fcdd.seeds import generator_of
from fcdd.training.lesson import Lesson
from fcdd.training.parallel import each
from fcdd.training.shards import Shards

SHARD = 32  # images whose features are written together
TOGETHER = 4  # images that run through the trunk together

Wanted = tuple[Tensor, int]  # the cells inside the region of interest, bool, and how many features in all


@dataclass(frozen=True)
class Bank:
    """Features of good parts: half of them of the images as they are, half of the same under another lamp."""

    features: Tensor  # (M, C)
    coarse: Tensor  # (K, C) of the images at about half the size; none where the network has no centres
    where: Tensor  # (K, 2) their places
    owners: Tensor  # (K,) which image each is of


@torch.inference_mode()
def gather(network: Description, good: Source, lesson: Lesson) -> Bank:
    """About `lesson.vectors` features of the cells inside the region of interest, evenly many of each image.

    Memory depends on the number of features, not on the number of images. With `lesson.work`, a folder, each finished
    shard is kept there and not computed again by a later call with the same identity.
    """
    grids: list[Wanted] = [(lesson.inside, lesson.vectors)]
    if network.centres is not None:
        grids.append((coarse_inside(lesson), POOL + REST))
    kept = Shards(lesson.work, lesson.identity)
    found: list[dict[str, Tensor]] = []
    with stop_on_signal() as stop, bar("reading good images", len(good), quiet=lesson.quiet) as shown:
        for number, indices in enumerate(torch.arange(len(good)).split(SHARD)):
            known = kept.get(f"bank-{number:05}")
            if known is None:
                known = _shard(network, good, grids, lesson.seed, indices)
                kept.put(f"bank-{number:05}", known)
            found.append(known)
            shown.advance(len(indices))
            if stop.is_set():
                raise Interrupted(f"stopped after {shown.done} of {len(good)} images")
    joined = {name: torch.cat([part[name] for part in found]) for name in found[0]}
    height, width = (coarse_side(side) // network.field.stride for side in lesson.shape)
    if network.centres is None:
        nothing = torch.empty(0, dtype=torch.long)
        return Bank(joined["features"], joined["features"][:0], torch.empty(0, 2), nothing)
    return Bank(joined["features"], joined["coarse"], places(height, width)[joined["cells"]], joined["owners"])


def coarse_inside(lesson: Lesson) -> Tensor:
    """Cells of the coarse image (h′·w′,) bool at least half of which lie in the region of interest, or touch it."""
    height, width = lesson.shape
    fine = lesson.inside.view(1, 1, height // 8, width // 8).float()
    cover = F.adaptive_avg_pool2d(fine, (coarse_side(height) // 8, coarse_side(width) // 8)).flatten()
    return cover >= 0.5 if bool((cover >= 0.5).any()) else cover > 0


def _shard(network: Description, good: Source, grids: list[Wanted], seed: int, indices: Tensor) -> dict[str, Tensor]:
    """Features of some cells of the images `indices`, of each grid."""
    parts = each(partial(_batch, network, good, grids, seed), indices.split(TOGETHER))
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def _batch(network: Description, good: Source, grids: list[Wanted], seed: int, part: Tensor) -> dict[str, Tensor]:
    images = good[part].float()
    generator = generator_of(seed, "bank", int(part[0]))
    found: dict[str, list[Tensor]] = {"features": [], "coarse": [], "cells": [], "owners": []}
    for view in (images, relit(images, generator)):
        for coarse, (inside, wanted) in enumerate(grids):
            count = -(-wanted // (2 * len(good)))
            for index, one in zip(part, network.features(view, bool(coarse)).flatten(2), strict=True):  # (C, h·w)
                some = _some(inside, count, generator)
                found["coarse" if coarse else "features"].append(one[:, some].T)
                if coarse:
                    found["cells"].append(some)
                    found["owners"].append(index.repeat(len(some)))
    return {name: torch.cat(tensors) for name, tensors in found.items() if tensors}


def _some(inside: Tensor, count: int, generator: Generator) -> Tensor:
    """At most `count` of the cells `inside` (k,) bool, at least one."""
    known = inside.nonzero().flatten()
    return known[torch.randperm(len(known), generator=generator)[: max(1, count)]]
