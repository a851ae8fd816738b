"""The bank: a bounded sample of nominal features, gathered in one pass of the frozen trunk that survives a kill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fcdd import modelfile
from fcdd.data import Source
from fcdd.data.views import relit
from fcdd.errors import ModelError
from fcdd.interrupt import Interrupted, stop_on_signal
from fcdd.nn.description import Description
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
    kept = _kept(work, identity or {}, len(shards))
    done = sum(len(shards[number]) for number in kept)
    with stop_on_signal() as stop, bar("reading good images", len(good), done, quiet=quiet) as shown:
        for number in sorted(set(range(len(shards))) - set(kept)):
            kept[number] = _sample(description, good, shards[number], inside, per_view, seed)
            if work is not None:
                modelfile.write(work / _name(number), "bank", {"features": kept[number]}, {})
            shown.advance(len(shards[number]))
            if stop.is_set():
                raise Interrupted(f"stopped after {shown.done} of {len(good)} images")
    return torch.cat([kept[number] for number in range(len(shards))])


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


def _name(number: int) -> str:
    return f"bank-{number:05}.safetensors"


def _kept(work: Path | None, identity: dict[str, Any], shards: int) -> dict[int, Tensor]:
    """The shards that `work` holds of this very training; those of another one are removed."""
    if work is None:
        return {}
    label = work / "identity.safetensors"
    try:
        known = modelfile.read(label, "identity")[1] == identity
    except ModelError:
        known = False
    if known:
        paths = {number: work / _name(number) for number in range(shards)}
        return {n: modelfile.read(path, "bank")[0]["features"] for n, path in paths.items() if path.exists()}
    for path in work.glob("bank-*.safetensors"):
        path.unlink()
    modelfile.write(label, "identity", {}, identity)
    return {}
