"""How much a head that learnt labelled defects may say: as much as defects show that it has not seen.

The labelled defects are parted into folds. For each, a head is trained on the others and scores those of the fold; the
trunk, and all that good images taught, stay as they are. So every defect has a score of a head that did not know it,
and the weight of the head is the one under which these scores stand out most from those of good images.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fcdd.data import Source
from fcdd.data.sources import Images
from fcdd.metrics import auroc
from fcdd.nn.description import Description
from fcdd.regions import strongest
from fcdd.training.head import Cells
from fcdd.training.lesson import Lesson

FOLDS = 3  # a head is trained for each, which is what this costs
FEWEST = 5  # labelled defects: with fewer nothing can be said about those to come
COMPARED = 64  # good images that the defects are compared with, at most
FACTORS = (0.0, 0.25, 0.5, 1.0)  # of the head's weight, among which the held-out defects choose
CAUTIOUS, MASKED = 0.25, 0.5  # where there are too few to choose: in general, and where all have a mask

Gather = Callable[[Lesson], Cells]  # the cells of a lesson's labelled defects
Train = Callable[[Cells], None]  # trains the head of the network anew


@dataclass(frozen=True)
class Outcome:
    """What the held-out defects say: whether to learn from defects at all, the factor of the head's weight, and the
    score of each defect by a head that has not seen it.

    The scores are empty where there are too few defects for any to be held out.
    """

    labelled: bool
    factor: float
    scores: tuple[float, ...] = ()


def joined(cells: Sequence[Cells]) -> Cells:
    """The cells of several sets of defects as those of one."""
    return Cells(
        torch.cat([one.anomalous for one in cells]),
        torch.cat([one.weight for one in cells]),
        torch.cat([one.nominal for one in cells]),
    )


def fit(
    network: Description,
    lesson: Lesson,
    top: float,
    gather: Gather,
    train: Train,
    made: Cells | None = None,
) -> Outcome:
    """Train the head on all labelled defects, after choosing the factor of its weight by folds of them.

    The network's weights are those of a full head on entry, and the head's is multiplied by the factor on return. Where
    there are cells of synthetic defects, `made`, `train` gets them too, and the head that learnt these alone, which the
    network has on entry, is another choice: it stays where labelled defects do not help those that are held out.
    """
    assert network.head is not None
    alone = {name: tensor.clone() for name, tensor in network.head.state_dict().items()}
    count = len(lesson.defects)
    folds = [list(range(i, count, FOLDS)) for i in range(min(FOLDS, count))]
    cells = [gather(_only(lesson, fold)) for fold in folds]
    if count >= FEWEST:
        outcome = _chosen(network, lesson, top, folds, cells, train, made)
    else:
        outcome = _cautious(all(mask is not None for mask in lesson.masks), made is not None)
    if outcome.labelled:
        train(joined(cells) if made is None else mixed(joined(cells), made))
    else:
        network.head.load_state_dict(alone)
    network.weights[network.PARTS.index("head")] *= outcome.factor
    return outcome


def mixed(labelled: Cells, made: Cells) -> Cells:
    """Labelled and synthetic defects, half of what is drawn from each."""
    return joined([replace(one, weight=one.weight / one.weight.sum()) for one in (labelled, made)])


def _cautious(masked: bool, synthetic: bool) -> Outcome:
    """Too few defects to choose by: one without a mask may teach the background, so it says little, or nothing where
    synthetic defects teach the head."""
    if synthetic:
        return Outcome(masked, 1.0)
    return Outcome(True, MASKED if masked else CAUTIOUS)


def _only(lesson: Lesson, chosen: Sequence[int]) -> Lesson:
    """The lesson with some of its labelled defects."""
    return replace(lesson, defects=[lesson.defects[i] for i in chosen], masks=[lesson.masks[i] for i in chosen])


def _chosen(
    network: Description,
    lesson: Lesson,
    top: float,
    folds: Sequence[Sequence[int]],
    cells: Sequence[Cells],
    train: Train,
    made: Cells | None,
) -> Outcome:
    """The factor under which held-out defects stand out most; the smaller where two do alike."""
    bad = Images(lesson.defects, lesson.shape)
    picked = torch.arange(0, len(lesson.good), max(1, len(lesson.good) // COMPARED))[:COMPARED]
    before = None
    if made is not None:
        of_bad = scores(network, bad, torch.arange(len(bad)), lesson.inside, top)[:, -1]
        before = scores(network, lesson.good, picked, lesson.inside, top, learnt=True)[:, -1], of_bad
    # Good images are scored by every fold's head, so that both sides are judged by the same heads.
    good_scores: list[Tensor] = []
    bad_scores = torch.zeros(len(lesson.defects), len(FACTORS))
    for number, fold in enumerate(folds):
        others = joined([one for i, one in enumerate(cells) if i != number])
        train(others if made is None else mixed(others, made))
        bad_scores[list(fold)] = scores(network, bad, torch.tensor(fold), lesson.inside, top)
        good_scores.append(scores(network, lesson.good, picked, lesson.inside, top, learnt=True))
    usual = torch.stack(good_scores).mean(0)
    apart = [_apart(usual[:, k], bad_scores[:, k]) for k in range(len(FACTORS))]
    best = max(range(len(FACTORS)), key=lambda k: (*apart[k], -k))
    if before is not None and _apart(*before) >= apart[best]:
        return Outcome(False, 1.0, tuple(before[1].tolist()))
    return Outcome(True, FACTORS[best], tuple(bad_scores[:, best].tolist()))


def _apart(good: Tensor, bad: Tensor) -> tuple[float, float]:
    """How far defects stand out from good images: the AUROC, and where that is equal, the mean distance of their
    logarithms in standard deviations of the good ones'."""
    area = auroc([*good.tolist(), *bad.tolist()], [0] * len(good) + [1] * len(bad))
    logs = good.clamp_min(1e-9).log()
    distance = (bad.clamp_min(1e-9).log().mean() - logs.mean()) / logs.std().clamp_min(0.01)
    return round(area, 3), round(float(distance), 2)


@torch.inference_mode()
def scores(
    network: Description, source: Source, indices: Tensor, inside: Tensor, top: float, learnt: bool = False
) -> Tensor:
    """Image scores (n, factors) with the head's weight multiplied by each of FACTORS.

    Images that were learnt from are not compared with their own examples, which are always near.
    """
    found: list[Tensor] = []
    for part in indices.split(4):
        maps = network.maps(source[part].float(), without=part if learnt else None)
        weights = dict(zip(network.PARTS, network.weights, strict=True))
        rest = sum(weights[name] * maps[name] for name in maps if name != "head")
        each = []
        for factor in FACTORS:
            cells = (rest + factor * weights["head"] * maps["head"]).flatten(1)[:, inside]
            each.append(cells.topk(strongest(cells.shape[1], top), 1).values.mean(1))
        found.append(torch.stack(each, 1))
    return torch.cat(found)
