"""The bank: a bounded sample of nominal features, gathered in one pass of the frozen trunk that survives a kill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fcdd.data import Source
from fcdd.data.views import relit
from fcdd.interrupt import Interrupted, stop_on_signal
from fcdd.nn.description import Description
from fcdd.progress import bar
from fcdd.seeds import generator_of
from fcdd.training.shards import Shards

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
    kept = Shards(work, identity or {})
    found: list[Tensor] = []
    with stop_on_signal() as stop, bar("reading good images", len(good), quiet=quiet) as shown:
        for number, indices in enumerate(torch.arange(len(good)).split(SHARD)):
            known = kept.get(f"bank-{number:05}")
            if known is None:
                known = {"features": _sample(description, good, indices, inside, per_view, seed)}
                kept.put(f"bank-{number:05}", known)
            found.append(known["features"])
            shown.advance(len(indices))
            if stop.is_set():
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
