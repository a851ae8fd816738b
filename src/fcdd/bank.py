"""The bank: a bounded sample of nominal features, gathered in one pass of the frozen trunk that survives a kill."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fcdd import modelfile
from fcdd.data import Source
from fcdd.data.views import relit
from fcdd.interrupt import Interrupted, stop_on_signal
from fcdd.networks.description import Description
from fcdd.progress import bar
from fcdd.seeds import generator_of

SHARD = 32  # images whose features are written together


@torch.inference_mode()
def gather(
    description: Description,
    good: Source,
    inside: Tensor,
    vectors: int,
    seed: int,
    work: Path | None = None,
    identity: dict[str, Any] | None = None,
    quiet: bool = True,
) -> Tensor:
    """About `vectors` features (M, C) of the cells `inside` (h·w,) bool, evenly many of each image, chosen by `seed`:
    half of them as the image is, half of it under another lamp.

    Memory depends on `vectors`, not on the number of images. With `work`, a folder, each finished shard is kept
    there and not computed again by a later call with the same `identity`.
    """
    per_view = max(1, min(int(inside.sum()), -(-vectors // (2 * len(good)))))
    shards = torch.arange(len(good)).split(SHARD)
    found: list[Tensor] = []
    _prepare(work, identity or {})
    with stop_on_signal() as stop, bar("reading good images", len(good), quiet=quiet) as shown:
        for number, indices in enumerate(shards):
            path = None if work is None else work / f"bank-{number:05}.safetensors"
            if path is None or not path.exists():
                sample = _sample(description, good, indices, inside, per_view, seed)
                if path is not None:
                    modelfile.write(path, "bank", {"features": sample}, {})
            found.append(sample if path is None else modelfile.read(path, "bank")[0]["features"])
            shown.advance(len(indices))
            if stop.is_set() and path is not None:
                raise Interrupted(f"stopped after {shown.done} of {len(good)} images")
    return torch.cat(found)


def _sample(
    description: Description, good: Source, indices: Tensor, inside: Tensor, per_view: int, seed: int
) -> Tensor:
    places = inside.nonzero().flatten()
    chosen = []
    for part in indices.split(4):
        images = good[part].float()
        generator = generator_of(seed, "bank", int(part[0]))
        for view in (images, relit(images, generator)):
            for one in description.features(view).flatten(2):  # (C, h·w)
                order = torch.randperm(len(places), generator=generator)
                chosen.append(one[:, places[order[:per_view]]].T)
    return torch.cat(chosen)


def _prepare(work: Path | None, identity: dict[str, Any]) -> None:
    """Make `work` this training's folder: shards of other images or settings are thrown away."""
    if work is None:
        return
    label = work / "identity.safetensors"
    if label.exists() and modelfile.read(label, "identity")[1] == identity:
        return
    if work.exists():
        shutil.rmtree(work)
    modelfile.write(label, "identity", {}, identity)
