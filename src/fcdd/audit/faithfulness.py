"""Is the heat the reason for the score? Take the hottest cells away and the score should fall; put them into a good
picture and it should rise: faster than with cells at random, and than with the hottest cells of a network of the same
shape that was never trained.

Cells are replaced by what a good picture shows at the same place. (Their mean over good pictures, on a surface with a
texture, is a flat grey that no good part shows.)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from markupsafe import Markup
from numpy.typing import NDArray

from fcdd.nn.description import Description
from fcdd.report import charts
from fcdd.seeds import generator_of

from .chance import LEVEL, mean_interval
from .evidence import Evidence, Pixels, cells_of, scores_of
from .findings import Finding, Picture, Question, Severity

PICTURES = 8
STEPS = (0.01, 0.03, 0.07, 0.15, 0.3)  # shares of the cells that are replaced
ORDERS = ("hottest first", "at random", "untrained network")
Floats = NDArray[np.float64]


def answer(evidence: Evidence, quiet: bool) -> list[Finding]:
    """One finding, with both curves."""
    group = evidence.bad if len(evidence.bad) else evidence.good
    chosen = group[np.argsort(-evidence.scores[group], kind="stable")][:: max(1, len(group) // PICTURES)][:PICTURES]
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
    # 1 is the picture's own score, 0 that of the good picture.
    span = np.where(np.abs(own - good) > 1e-9, own - good, 1e-9)
    curves = (scores - good) / span[:, None, None, None]
    return [_finding(evidence, chosen, curves, changed)]


def _orders(evidence: Evidence, chosen: NDArray[np.intp]) -> NDArray[np.intp]:
    """(orders, pictures, cells): in which order the cells of each picture are replaced."""
    inside = np.flatnonzero(evidence.detector.inside.ravel())
    hottest = evidence.cells[chosen].reshape(len(chosen), -1)[:, inside]
    generator = generator_of(evidence.detector.seed, "audit", "random cells")
    random = torch.rand(hottest.shape, generator=generator).numpy()
    untrained = _untrained(evidence, chosen).reshape(len(chosen), -1)[:, inside]
    return np.stack([inside[np.argsort(-values, 1, kind="stable")] for values in (hottest, random, untrained)])


@torch.inference_mode()
def _untrained(evidence: Evidence, chosen: NDArray[np.intp]) -> NDArray[np.float32]:
    """Cells (n, h, w) of a description of the same shape with random weights that has never seen a good picture."""
    detector = evidence.detector
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(generator_of(detector.seed, "audit", "untrained").initial_seed())
        description = Description(replace(detector.settings.architecture, dimensions=0)).eval()
    inputs = torch.from_numpy(evidence.inputs[chosen]).permute(0, 3, 1, 2).float()
    return np.concatenate([description(one[None])[:, 0].numpy() for one in inputs])


def _mixed(base: Pixels, top: Pixels, places: NDArray[np.intp], evidence: Evidence) -> Pixels:
    """`base` with the pixels of the cells `places` from `top`, the seam softened over half a cell."""
    grid = evidence.detector.grid
    taken = np.zeros(grid.cells, np.float32)
    taken.ravel()[places] = 1
    weight = np.kron(taken, np.ones((grid.stride, grid.stride), np.float32))
    weight = np.pad(weight, [(0, n - m) for n, m in zip(grid.shape, weight.shape, strict=True)], "edge")
    for axis in (0, 1):  # a mean over five pixels along each side
        weight = np.mean([np.roll(np.pad(weight, 2, "edge"), s, axis)[2:-2, 2:-2] for s in range(-2, 3)], 0)
    return np.round(base + weight[..., None] * (top.astype(np.float32) - base)).astype(np.uint8)


def _finding(evidence: Evidence, chosen: NDArray[np.intp], curves: Floats, changed: list[Pixels]) -> Finding:
    """`curves` (pictures, deletion or insertion, orders, steps), relative to the picture and to a good one."""
    deleted, inserted = curves[:, 0].mean(-1), curves[:, 1].mean(-1)
    gains = (deleted[:, 1:] - deleted[:, :1]) + (inserted[:, :1] - inserted[:, 1:])  # over random, over untrained
    lows = [mean_interval(gains[:, k], LEVEL)[0] for k in (0, 1)]
    faithful, better = lows[0] > 0, lows[1] > 0
    severity = Severity.NONE if faithful and better else Severity.LOW if faithful else Severity.MEDIUM
    fall = 1 - curves[:, 0, :, 1].mean(0)
    sentence = (
        f"With the hottest {STEPS[1]:.0%} of the cells replaced by those of a good picture the score of "
        f"{len(chosen)} pictures falls by {fall[0]:.0%} of its way to that of the good one; with as many cells at "
        f"random by {fall[1]:.0%}, with the hottest of an untrained network by {fall[2]:.0%}."
    )
    titles = {
        Severity.NONE: "The heat is the reason for the score",
        Severity.LOW: "The heat explains the score hardly better than an untrained network's",
        Severity.MEDIUM: "The heat does not explain the score better than cells at random",
    }
    per = len(STEPS)
    return Finding(
        Question.FAITHFULNESS,
        severity,
        titles[severity],
        sentence,
        "Nothing to do."
        if severity is Severity.NONE
        else "Do not read the heatmaps as reasons; look at more pictures.",
        [
            evidence.picture(int(chosen[0])),
            Picture(f"its hottest {STEPS[2]:.0%} replaced", evidence.shown(changed[2])),
            Picture(f"{STEPS[2]:.0%} at random replaced", evidence.shown(changed[per + 2])),
        ],
        effect=float(max(0.0, -lows[0])),
        figures={
            **{f"deletion, {name}": float(deleted[:, k].mean()) for k, name in enumerate(ORDERS)},
            **{f"insertion, {name}": float(inserted[:, k].mean()) for k, name in enumerate(ORDERS)},
        },
        chart=_chart("Deletion", curves[:, 0].mean(0), 1.0) + _chart("Insertion", curves[:, 1].mean(0), 0.0),
    )


def _chart(title: str, curves: Floats, start: float) -> Markup:
    """Curves (orders, steps) over the share of the cells replaced, the last step at the right end."""
    x = np.array([0.0, *STEPS]) / STEPS[-1]
    lines = {name: np.stack([x, np.clip([start, *curves[k]], 0, 1)], 1) for k, name in enumerate(ORDERS)}
    name = f"share of the cells, 1 = {STEPS[-1]:.0%}"
    return charts.figure(title, charts.curves(lines, name, "score left", diagonal=False))
