"""Where the heat is: mean maps, the share of the score in the margins of the picture, and places that are warm
whatever the pictures show."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fcdd.regions import components

from .chance import LEVEL, binomial_tail, mean_interval
from .evidence import Evidence
from .findings import Finding, Picture, Question, Severity

BORDER = 1 / 12  # of each side
CORNER = 1 / 6
WARM = 0.1  # share of the cells that count as the warm ones of a picture
ABOVE = 2.0  # a zone holds too much of the score from so many times its share of the area


def answer(evidence: Evidence, quiet: bool) -> list[Finding]:
    """Findings on zones and on heat that belongs to the position."""
    return [_zones(evidence), _position(evidence)]


def zones(evidence: Evidence) -> dict[str, NDArray[np.bool_]]:
    """Cells (h, w) of the border, the corners and, where it can be told, the background; inside the ROI only."""
    height, width = evidence.cells.shape[1:]
    y, x = (np.minimum(np.arange(n), np.arange(n)[::-1]) / n for n in (height, width))
    found = {
        "border": (y[:, None] < BORDER) | (x < BORDER),
        "corners": (y[:, None] < CORNER) & (x < CORNER),
    }
    background = _background(evidence)
    if background is not None:
        found["background"] = background
    inside = evidence.detector.inside
    return {name: zone & inside for name, zone in found.items() if (zone & inside).any()}


def _background(evidence: Evidence) -> NDArray[np.bool_] | None:
    """Cells that look like the border all around, where the mean good picture shows such: 15 to 85 % of it."""
    grid = evidence.detector.grid
    mean = evidence.inputs[evidence.some_good(64)].mean(0)
    height, width = grid.cells
    blocks = mean[: height * grid.stride, : width * grid.stride].reshape(height, grid.stride, width, grid.stride, 3)
    colours = blocks.mean((1, 3))
    edge = np.concatenate([colours[0], colours[-1], colours[:, 0], colours[:, -1]])
    middle = np.median(edge, 0)
    like = np.abs(colours - middle).max(-1) < max(12.0, 2 * float(np.median(np.abs(edge - middle))))
    labels, _ = components(like)
    rim = np.concatenate([labels[0], labels[-1], labels[:, 0], labels[:, -1]])
    background = np.isin(labels, np.unique(rim[rim > 0]))
    return background if 0.15 <= background.mean() <= 0.85 and (rim > 0).mean() > 0.8 else None


def _share(evidence: Evidence, zone: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(N,): the share of each picture's score that comes from cells of `zone`."""
    flat = evidence.cells.reshape(len(evidence.cells), -1)
    weight = np.take_along_axis(flat, evidence.hot, 1).astype(np.float64)
    return np.asarray((weight * zone.ravel()[evidence.hot]).sum(1) / np.maximum(weight.sum(1), 1e-12))


def _zones(evidence: Evidence) -> Finding:
    """Whether the score of the anomalous pictures (or of all, where none is) comes from the margins."""
    group = evidence.bad if len(evidence.bad) else evidence.good
    found = zones(evidence)
    inside = evidence.detector.inside.sum()
    figures: dict[str, float] = {}
    worst, excess = "", 0.0
    for name, zone in found.items():
        share, area = _share(evidence, zone), float(zone.sum() / inside)
        low, _ = mean_interval(share[group], LEVEL / len(found))
        figures |= {f"{name}_area": area, f"{name}_good": float(share[evidence.good].mean())}
        if len(evidence.bad):
            figures[f"{name}_anomalous"] = float(share[evidence.bad].mean())
        if low > ABOVE * area and low - area > excess:
            worst, excess = name, low - area
    pictures = _means(evidence)
    shares = ", ".join(
        f"{name} {_share(evidence, zone)[group].mean():.0%} of the score on {zone.sum() / inside:.0%} of the area"
        for name, zone in found.items()
    )
    who = "anomalous" if len(evidence.bad) else "good"
    if worst:
        return Finding(
            Question.HEAT,
            Severity.MEDIUM if excess > 0.25 else Severity.LOW,
            f"Much of the score comes from the {worst}",
            f"Of the score of {who} pictures: {shares}.",
            "Look at the pictures that score there. If the part does not reach there, mark it with --roi, or the "
            "margin with --ignore.",
            pictures,
            effect=excess,
            figures=figures,
        )
    return Finding(
        Question.HEAT,
        Severity.NONE,
        "The margins hold no more of the score than they should",
        f"Of the score of {who} pictures: {shares}.",
        "Nothing to do.",
        pictures,
        figures=figures,
    )


def _means(evidence: Evidence) -> list[Picture]:
    """Mean maps of all pictures and of each kind (the largest five)."""
    kinds = sorted(set(evidence.kinds), key=lambda kind: -list(evidence.kinds).count(kind))
    shown = [Picture(f"mean heat of all {len(evidence.cells)}", evidence.map(evidence.cells.mean(0)))]
    for kind in kinds[:5]:
        members = np.array([one == kind for one in evidence.kinds])
        shown.append(Picture(f"{kind}, {members.sum()}", evidence.map(evidence.cells[members].mean(0))))
    return shown


def always_warm(evidence: Evidence) -> NDArray[np.bool_]:
    """Cells (h, w) that belong to the warmest tenth of most good pictures, beyond chance for any one cell."""
    inside = evidence.detector.inside
    cells = evidence.cells[evidence.good][:, inside]
    warm = cells > np.quantile(cells, 1 - WARM, axis=1, keepdims=True)
    needed = next(
        n
        for n in range(len(cells) // 2 + 1, len(cells) + 2)
        if binomial_tail(n, len(cells), WARM) * cells.shape[1] < LEVEL
    )
    found = np.zeros(inside.shape, np.bool_)
    found[inside] = warm.sum(0) >= needed
    return found


def _position(evidence: Evidence) -> Finding:
    """Places that are warm whatever the picture shows there: heat of the position, not of the content."""
    warm = always_warm(evidence)
    share = _share(evidence, warm)
    held, area = float(share[evidence.good].mean()), float(warm.sum() / evidence.detector.inside.sum())
    bad = float(share[evidence.bad].mean()) if len(evidence.bad) else 0.0
    worth = held >= 0.5 or bad >= 0.5
    return Finding(
        Question.HEAT,
        Severity.LOW if worth else Severity.NONE,
        "Some places are warm in every picture" if worth else "Heat follows what the pictures show, not the place",
        f"{area:.1%} of the cells belong to the warmest tenth of most good pictures. They hold {held:.0%} of the "
        f"score of good pictures" + (f" and {bad:.0%} of that of anomalous ones." if len(evidence.bad) else "."),
        "Look at these places: dirt on the lens, uneven light, a fixture, or a part of the product that varies much? "
        "What is not the part can be left out with --ignore."
        if worth
        else "Nothing to do.",
        [
            Picture("mean heat of good pictures", evidence.map(evidence.cells[evidence.good].mean(0))),
            Picture("a good picture; places warm in most are bright", _lit(evidence, warm)),
        ],
        effect=max(held, bad),
        figures={"area": area, "share_good": held, "share_anomalous": bad},
    )


def _lit(evidence: Evidence, cells: NDArray[np.bool_]) -> str:
    """A good picture with all but `cells` darkened."""
    grid = evidence.detector.grid
    picture = evidence.inputs[evidence.good[0]].copy()
    mask = np.kron(cells, np.ones((grid.stride, grid.stride), np.bool_))
    picture[~mask] = picture[~mask] // 3
    return evidence.shown(picture)
