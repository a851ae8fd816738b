"""What synthetic defects teach: cells of good images with a defect each, and of the good surface beside it."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from fcdd.anomalies import synthetic
from fcdd.data import Source
from fcdd.interrupt import Interrupted, stop_on_signal
from fcdd.nn.description import Description
from fcdd.progress import bar
from fcdd.seeds import generator_of
from fcdd.training import maps
from fcdd.training.head import Cells
from fcdd.training.lesson import Lesson
from fcdd.training.parallel import each
from fcdd.training.shards import Shards

WANTED = 480  # views with a defect each, evenly of at most half as many good images
FEWEST_VIEWS, MOST_VIEWS = 2, 16  # of one good image
BAD, GOOD = 300, 150  # cells kept of a view
SHARD, TOGETHER = 32, 4  # images whose cells are written together, and that run through the trunk together


@torch.inference_mode()
def gather(network: Description, lesson: Lesson) -> Cells:
    """Whitened features of the cells that synthetic defects cover by more than half, and of those they leave free.

    Half of the views are under another lamp. With the lesson's `work`, a killed call goes on.
    """
    good = maps.good_images(lesson)
    order = torch.randperm(len(good), generator=generator_of(lesson.seed, "synthesis"))[: WANTED // FEWEST_VIEWS]
    repeats = max(FEWEST_VIEWS, min(MOST_VIEWS, round(WANTED / len(order))))
    plan = [(repeat, part) for repeat in range(repeats) for part in order.split(SHARD)]
    kept = Shards(lesson.work, lesson.identity)
    found: list[dict[str, Tensor]] = []
    total = repeats * len(order)
    with stop_on_signal() as stop, bar("making synthetic defects", total, quiet=lesson.quiet) as shown:
        for number, (repeat, indices) in enumerate(plan):
            known = kept.get(f"synthesis-{number:05}")
            if known is None:
                parts = each(partial(_views, network, lesson, good, repeat), indices.split(TOGETHER))
                known = {name: torch.cat([part[name] for part in parts]) for name in ("anomalous", "nominal")}
                kept.put(f"synthesis-{number:05}", known)
            found.append(known)
            shown.advance(len(indices))
            if stop.is_set():
                raise Interrupted(f"stopped after {shown.done} of {total} views")
    anomalous, nominal = (
        network.whiten(torch.cat([part[name] for part in found]).float()) for name in ("anomalous", "nominal")
    )
    return Cells(anomalous[:, None].clone(), torch.ones(len(anomalous)), nominal.clone())


def _views(network: Description, lesson: Lesson, source: Source, repeat: int, part: Tensor) -> dict[str, Tensor]:
    """Features (M, C), half precision, of bad and of good cells of the images `part` with a synthetic defect each."""
    images = source[part].float()
    generator = generator_of(lesson.seed, "synthesis", repeat, int(part[0]))
    defected, masks = synthetic.mixture(maps.lamp(images, generator) / 255, generator)
    features = network.features((255 * defected).round())
    covered = F.adaptive_avg_pool2d(masks.float(), (features.shape[2], features.shape[3])).flatten(1)
    bad, good = [], []
    for one, cover in zip(features.flatten(2).transpose(1, 2).half(), covered, strict=True):
        limit = min(0.5, 0.6 * float(cover.max()))
        bad.append(one[_some((cover > limit) & lesson.inside, BAD, generator)])
        good.append(one[_some((cover == 0) & lesson.inside, GOOD, generator)])
    return {"anomalous": torch.cat(bad), "nominal": torch.cat(good)}


def _some(where: Tensor, count: int, generator: Generator) -> Tensor:
    """At most `count` of the places where `where` (k,) holds."""
    places = where.nonzero().flatten()
    return places[torch.randperm(len(places), generator=generator)[:count]]
