"""Whole maps of features of a frozen trunk, run once: what a head is trained from by the paper's objectives.

The trunk does not change, so its features of every view of every image are computed once, in half precision, and the
head sees them as often as it needs. This turns hours of training into minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Generator, Tensor

from fcdd.anomalies import synthetic
from fcdd.anomalies.cues import Marked
from fcdd.data import Source
from fcdd.data.sources import Images
from fcdd.data.views import relit, turned
from fcdd.interrupt import Interrupted, stop_on_signal
from fcdd.nn.description import Description
from fcdd.progress import bar
from fcdd.seeds import generator_of
from fcdd.training.lesson import Lesson
from fcdd.training.parallel import each
from fcdd.training.shards import Shards

WANTED = 240  # good views, and as many of each kind of anomaly, where so few images do not suffice for more
MOST_VIEWS = 8  # of one good image
LABELLED_VIEWS, LABELLED = 24, 320  # of one labelled anomaly, and of all together
SHARD, TOGETHER = 16, 4  # images whose maps are written together, and that run through the trunk together


@dataclass(frozen=True)
class Maps:
    """Features of n views, (n, k, C) half, of the k cells inside the region of interest, and what is anomalous there.

    `truth` (n, k) in {0, 1} is Y of eq. 3; ones everywhere, where it is not known, make eq. 3 the
    image-level eq. 2; a nominal view has zeros.
    """

    features: Tensor
    truth: Tensor

    def __len__(self) -> int:
        return len(self.features)


def nominal(network: Description, lesson: Lesson) -> Maps:
    """Views of good images."""

    def view(images: Tensor, repeat: int, generator: Generator) -> Tensor:
        return lamp(images, generator)

    return _of_source(network, lesson, good_images(lesson), "good", view, anomalous=False)


def local(network: Description, lesson: Lesson) -> Maps:
    """Good images with a local synthetic defect each."""

    def view(images: Tensor, repeat: int, generator: Generator) -> Tensor:
        return (255 * synthetic.mixture(lamp(images, generator) / 255, generator)[0]).round()

    return _of_source(network, lesson, good_images(lesson), "local", view, anomalous=True)


def confetti(network: Description, lesson: Lesson) -> Maps:
    """Good images with the paper's confetti noise."""

    def view(images: Tensor, repeat: int, generator: Generator) -> Tensor:
        return (255 * synthetic.mixture(lamp(images, generator) / 255, generator, kinds=["confetti"])[0]).round()

    return _of_source(network, lesson, good_images(lesson), "confetti", view, anomalous=True)


def outliers(network: Description, lesson: Lesson) -> Maps:
    """Images of other things: Outlier Exposure."""
    source = Images(lesson.outliers, lesson.shape)
    return _of_source(network, lesson, source, "outliers", lambda images, *_: images, anomalous=True)


@torch.inference_mode()
def labelled(network: Description, lesson: Lesson) -> Maps:
    """Turned views of the labelled anomalies under other lamps, with their masks where they have one."""
    source: Source = Images(lesson.defects, lesson.shape)
    source = Marked(source, lesson.cues, lesson.seed) if lesson.cues else source
    count = max(1, min(LABELLED_VIEWS, LABELLED // len(lesson.defects)))
    features, truths = [], []
    with bar("reading labelled anomalies", len(lesson.defects), quiet=lesson.quiet) as shown:
        for index, mask in enumerate(lesson.masks):
            image, where = source[torch.tensor([index])].float(), _where(mask, lesson.shape)
            for view in range(count):
                generator = generator_of(lesson.seed, "labelled", index, view)
                both = torch.cat([image, where], 1)
                both = both if view == 0 else turned(both, generator)
                seen = both[:, :3] if view == 0 else lamp(both[:, :3], generator)
                features.append(_seen(network, seen, lesson.inside))
                truths.append(_covered(both[:, 3:], network, lesson))
            shown.advance(1)
    return Maps(torch.cat(features), torch.cat(truths))


def _where(mask: NDArray[np.bool_] | None, shape: tuple[int, int]) -> Tensor:
    """A mask (1, 1, H, W) in [0, 1] at the input's shape; ones where there is none."""
    if mask is None:
        return torch.ones(1, 1, *shape)
    return F.interpolate(torch.from_numpy(mask)[None, None].float(), shape, mode="bilinear", antialias=True)


def _covered(where: Tensor, network: Description, lesson: Lesson) -> Tensor:
    """Y (1, k): cells that the mask (1, 1, H, W) covers by more than half, or most, where it covers none by half."""
    stride = network.field.stride
    cells = F.adaptive_avg_pool2d(where, (where.shape[2] // stride, where.shape[3] // stride)).flatten(1)
    cells = cells[:, lesson.inside]
    limit = torch.minimum(torch.tensor(0.5), 0.6 * cells.amax(1, keepdim=True))
    return ((cells > limit) & (cells > 0)).float()


View = Callable[[Tensor, int, Generator], Tensor]  # images (n, 3, H, W) in 0…255, which repetition, chance → images


def lamp(images: Tensor, generator: Generator) -> Tensor:
    """Half of the images (n, 3, H, W) under another lamp; nominal and anomalous alike, else the lamp would tell."""
    other = torch.rand(len(images), 1, 1, 1, generator=generator) < 0.5
    return torch.where(other, relit(images, generator), images)


def good_images(lesson: Lesson) -> Source:
    """The good images as they are learnt from: with what must not count in half of them."""
    return Marked(lesson.good, lesson.cues, lesson.seed) if lesson.cues else lesson.good


@torch.inference_mode()
def _of_source(network: Description, lesson: Lesson, source: Source, name: str, view: View, anomalous: bool) -> Maps:
    """About `WANTED` views of the images of `source`, evenly of all; more images than that are drawn from."""
    repeats = max(1, min(MOST_VIEWS, round(WANTED / len(source))))
    order = torch.randperm(len(source), generator=generator_of(lesson.seed, "maps", name))[:WANTED].sort().values
    plan = [(repeat, part) for repeat in range(repeats) for part in order.split(SHARD)]
    kept = Shards(lesson.work, lesson.identity)
    found: list[Tensor] = []
    title = {"good": "reading good images", "outliers": "reading outliers"}.get(name, f"making {name} defects")
    total = repeats * len(order)
    with stop_on_signal() as stop, bar(title, total, quiet=lesson.quiet) as shown:
        for number, (repeat, indices) in enumerate(plan):
            known = kept.get(f"{name}-{number:05}")
            if known is None:
                known = {"features": _maps(network, lesson, source, indices, view, (name, repeat))}
                kept.put(f"{name}-{number:05}", known)
            found.append(known["features"])
            shown.advance(len(indices))
            if stop.is_set():
                raise Interrupted(f"stopped after {shown.done} of {total} images")
    features = torch.cat(found)
    return Maps(features, torch.full(features.shape[:2], float(anomalous)))


def _maps(
    network: Description, lesson: Lesson, source: Source, indices: Tensor, view: View, key: tuple[str, int]
) -> Tensor:
    name, repeat = key

    def seen(part: Tensor) -> Tensor:
        generator = generator_of(lesson.seed, "view", name, repeat, int(part[0]))
        return _seen(network, view(source[part].float(), repeat, generator), lesson.inside)

    return torch.cat(each(seen, indices.split(TOGETHER)))


def _seen(network: Description, images: Tensor, inside: Tensor) -> Tensor:
    """Images (n, 3, H, W) → features (n, k, C) of the cells inside, half precision."""
    return network.features(images).flatten(2)[:, :, inside].transpose(1, 2).half().contiguous()
