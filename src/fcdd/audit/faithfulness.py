"""Is the heat the reason for the score? Take the hottest cells away and the score should fall; put them into a good
image and it should rise: faster than with cells at random, and than with the hottest cells of a network of the same
shape that was never trained.

Cells are replaced by what a good image shows at the same place. (Their mean over good images, on a surface with a
texture, is a flat grey that no good part shows.)
"""

from __future__ import annotations

import numpy as np
import torch
from markupsafe import Markup
from numpy.typing import NDArray
from scipy import ndimage

from fcdd.nn.network import untrained
from fcdd.report import charts
from fcdd.seeds import generator_of

from .chance import FEWEST, LEVEL, ODDS, detectable, mean_interval
from .evidence import Evidence, Pixels, cells_of, scores_of
from .findings import Finding, Illustration, Question, Severity

IMAGES = 8
STEPS = (0.01, 0.03, 0.07, 0.15, 0.3)  # shares of the cells that are replaced
MATTERS = 0.25  # advantage that has to be noticed before its absence counts
ORDERS = ("hottest first", "at random", "untrained network")
Floats = NDArray[np.float64]


def answer(evidence: Evidence, quiet: bool) -> list[Finding]:
    """One finding, with the curves of deletion and of insertion over up to `IMAGES` images, anomalous ones if any."""
    group = evidence.bad if len(evidence.bad) else evidence.good
    chosen = group[np.argsort(-evidence.scores[group], kind="stable")][:: max(1, len(group) // IMAGES)][:IMAGES]
    median = evidence.good[np.argsort(evidence.scores[evidence.good])[len(evidence.good) // 2]]
    donor = evidence.inputs[median]
    orders = _orders(evidence, chosen)
    changed = [
        _mixed(base, top, order[: max(1, round(step * len(order)))], evidence)
        for n, i in enumerate(chosen)
        for base, top in ((evidence.inputs[i], donor), (donor, evidence.inputs[i]))
        for order in orders[:, n]
        for step in STEPS
    ]
    cells = cells_of(evidence.detector, changed, "taking cells away", quiet)
    scores = scores_of(evidence.detector, cells).reshape(len(chosen), 2, len(ORDERS), len(STEPS))
    own, good = evidence.scores[chosen], float(evidence.scores[median])
    # 1 is the image's own score, 0 that of the good image.
    span = np.where(np.abs(own - good) > 1e-9, own - good, 1e-9)
    curves = (scores - good) / span[:, None, None, None]
    return [_finding(evidence, chosen, curves, changed)]


def _orders(evidence: Evidence, chosen: NDArray[np.intp]) -> NDArray[np.intp]:
    """(orders, images, cells): in which order the cells of each image are replaced."""
    inside = np.flatnonzero(evidence.detector.inside.ravel())
    hottest = evidence.cells[chosen].reshape(len(chosen), -1)[:, inside]
    generator = generator_of(evidence.detector.seed, "audit", "random cells")
    random = torch.rand(hottest.shape, generator=generator).numpy()
    untrained = _untrained(evidence, chosen).reshape(len(chosen), -1)[:, inside]
    return np.stack([inside[np.argsort(-values, 1, kind="stable")] for values in (hottest, random, untrained)])


@torch.inference_mode()
def _untrained(evidence: Evidence, chosen: NDArray[np.intp]) -> NDArray[np.float32]:
    """Cells (n, h, w) of a network of the same shape with random weights that has never seen a good image."""
    detector = evidence.detector
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(generator_of(detector.seed, "audit", "untrained").initial_seed())
        network = untrained(detector.network.architecture)
    inputs = torch.from_numpy(evidence.inputs[chosen]).permute(0, 3, 1, 2).float()
    return np.concatenate([network(one[None])[:, 0].numpy() for one in inputs])


def _mixed(base: Pixels, top: Pixels, places: NDArray[np.intp], evidence: Evidence) -> Pixels:
    """`base` with the pixels of the cells `places` from `top`, the seam softened over half a cell."""
    grid = evidence.detector.grid
    taken = np.zeros(grid.cells, np.float32)
    taken.ravel()[places] = 1
    weight = np.kron(taken, np.ones((grid.stride, grid.stride), np.float32))
    weight = np.pad(weight, [(0, n - m) for n, m in zip(grid.shape, weight.shape, strict=True)], "edge")
    weight = ndimage.uniform_filter(weight, 5, mode="nearest")
    return np.asarray(np.round(base + weight[..., None] * (top.astype(np.float32) - base)), np.uint8)


def verdict(gains: Floats) -> tuple[Severity, str]:
    """Severity and title from what the hottest cells gain over the controls.

    Args:
        gains: (images, 2), over cells at random and over an untrained network. 1 is as much as the whole way between
            the score of an image and that of a good one, in one of the two curves.
    """
    unsure = [len(gains) < FEWEST or detectable(gains[:, k], LEVEL) > MATTERS for k in (0, 1)]
    shown = [len(gains) >= FEWEST and mean_interval(gains[:, k], LEVEL)[0] > 0 for k in (0, 1)]
    if all(shown):
        return Severity.NONE, "The heat is the reason for the score"
    if not shown[0]:
        if unsure[0]:
            return Severity.UNKNOWN, "Too few to say whether the heat is the reason for the score"
        return Severity.MEDIUM, "The heat does not explain the score better than cells at random"
    if unsure[1]:
        return Severity.UNKNOWN, "Better than cells at random; too few to say whether better than an untrained network"
    return Severity.LOW, "The heat explains the score hardly better than an untrained network's"


def _power(gains: Floats) -> str:
    if len(gains) < FEWEST:
        return f"{len(gains)} images are fewer than the {FEWEST} this question needs."
    smallest = [detectable(gains[:, k], LEVEL) for k in (0, 1)]
    return (
        f"With {len(gains)} images, an advantage of {smallest[0]:.2f} over cells at random and of {smallest[1]:.2f} "
        f"over an untrained network would be noticed {ODDS}; 1 is the whole way from the score of a good image. "
        f"Without an advantage, a verdict takes that {MATTERS} would be noticed."
    )


REMEDIES = {
    Severity.NONE: "Nothing to do.",
    Severity.UNKNOWN: "Give more anomalous images; until then take the heatmaps as hints.",
    Severity.LOW: "Do not read the heatmaps as reasons; look at more images.",
    Severity.MEDIUM: "Do not read the heatmaps as reasons; look at more images.",
}


def _finding(evidence: Evidence, chosen: NDArray[np.intp], curves: Floats, changed: list[Pixels]) -> Finding:
    """`curves` (images, deletion or insertion, orders, steps), relative to the image and to a good one."""
    deleted, inserted = curves[:, 0].mean(-1), curves[:, 1].mean(-1)
    gains = (deleted[:, 1:] - deleted[:, :1]) + (inserted[:, :1] - inserted[:, 1:])  # over random, over untrained
    severity, title = verdict(gains)
    fall = 1 - curves[:, 0, :, 1].mean(0)
    per = len(STEPS)
    return Finding(
        Question.FAITHFULNESS,
        severity,
        title,
        f"With the hottest {STEPS[1]:.0%} of the cells replaced by those of a good image the score of "
        f"{len(chosen)} images falls by {fall[0]:.0%} of its way to that of the good one; with as many cells at "
        f"random by {fall[1]:.0%}, with the hottest of an untrained network by {fall[2]:.0%}.",
        REMEDIES[severity],
        [
            evidence.image(int(chosen[0])),
            Illustration(f"its hottest {STEPS[2]:.0%} replaced", evidence.shown(changed[2])),
            Illustration(f"{STEPS[2]:.0%} at random replaced", evidence.shown(changed[per + 2])),
        ],
        effect=float(max(0.0, -gains[:, 0].mean())),
        figures={
            **{f"deletion, {name}": float(deleted[:, k].mean()) for k, name in enumerate(ORDERS)},
            **{f"insertion, {name}": float(inserted[:, k].mean()) for k, name in enumerate(ORDERS)},
        },
        chart=_chart("Deletion", curves[:, 0].mean(0), 1.0) + _chart("Insertion", curves[:, 1].mean(0), 0.0),
        power=_power(gains),
    )


def _chart(title: str, curves: Floats, start: float) -> Markup:
    """Curves (orders, steps) over the share of the cells replaced, the last step at the right end."""
    x = np.array([0.0, *STEPS]) / STEPS[-1]
    lines = {name: np.stack([x, np.clip([start, *curves[k]], 0, 1)], 1) for k, name in enumerate(ORDERS)}
    name = f"share of the cells, 1 = {STEPS[-1]:.0%}"
    return charts.figure(title, charts.curves(lines, name, "score left", diagonal=False))
