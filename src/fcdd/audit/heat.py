"""Where the heat is: in the margins of the images (`zones`), and at places that are warm whatever the images show."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import zones
from .chance import LEVEL, binomial_tail
from .evidence import Evidence
from .findings import Finding, Illustration, Question, Severity

WARM = 0.1  # share of the cells that count as the warm ones of an image
MOSTLY = 0.5  # share of the score from which places that are always warm are worth a look
REMEDIES = {
    Severity.LOW: "Look at these places: dirt on the lens, uneven light, a fixture, or a part of the product that "
    "varies much? What is not the part can be left out with --ignore.",
    Severity.UNKNOWN: "Give more good images.",
    Severity.NONE: "Nothing to do.",
}


def answer(evidence: Evidence, quiet: bool) -> list[Finding]:
    """Two findings: on the margins of the images, and on heat that belongs to the position."""
    return [zones.answer(evidence), _position(evidence)]


def always_warm(evidence: Evidence) -> NDArray[np.bool_]:
    """Cells (h, w) that belong to the warmest tenth of most good images, beyond chance for any one cell."""
    inside = evidence.detector.inside
    cells = evidence.cells[evidence.good][:, inside]
    warm = cells > np.quantile(cells, 1 - WARM, axis=1, keepdims=True)
    needed = fewest_warm(*cells.shape)
    found = np.zeros(inside.shape, np.bool_)
    found[inside] = warm.sum(0) >= needed
    return found


def fewest_warm(images: int, cells: int) -> int:
    """In how many of `images` one of `cells` has to be warm to be told from chance; `images` + 1 where none can be."""
    possible = range(images // 2 + 1, images + 2)
    return next(n for n in possible if binomial_tail(n, images, WARM) * cells < LEVEL)


def _position(evidence: Evidence) -> Finding:
    """Places that are warm whatever the image shows there: heat of the position, not of the content."""
    warm = always_warm(evidence)
    share = zones.share_of(evidence, warm)
    held, area = float(share[evidence.good].mean()), float(warm.sum() / evidence.detector.inside.sum())
    bad = float(share[evidence.bad].mean()) if len(evidence.bad) else 0.0
    worth = held >= MOSTLY or bad >= MOSTLY
    count, cells = len(evidence.good), int(evidence.detector.inside.sum())
    needed = fewest_warm(count, cells)
    if needed > count:
        severity, title = Severity.UNKNOWN, "Too few to say whether places are warm in every image"
        power = f"Of {count} good images, even a place that is warm in all could be so by chance"
    else:
        severity = Severity.LOW if worth else Severity.NONE
        power = f"Of {count} good images, a place has to be warm in {needed} to be told from chance"
        title = (
            "Some places are warm in every image"
            if worth
            else "Places that are warm in every image hold little of the score"
            if warm.any()
            else "Heat follows what the images show, not the place"
        )
    return Finding(
        Question.HEAT,
        severity,
        title,
        f"{area:.1%} of the cells belong to the warmest tenth of most good images. They hold {held:.0%} of the "
        f"score of good images" + (f" and {bad:.0%} of that of anomalous ones." if len(evidence.bad) else "."),
        REMEDIES[severity],
        [
            Illustration("mean heat of good images", evidence.map(evidence.cells[evidence.good].mean(0))),
            Illustration("a good image; places warm in most are bright", _lit(evidence, warm)),
        ],
        effect=max(held, bad),
        figures={"area": area, "share_good": held, "share_anomalous": bad},
        power=f"{power} (false alarms in {LEVEL:.0%} of audits).",
    )


def _lit(evidence: Evidence, cells: NDArray[np.bool_]) -> str:
    """A good image with all but `cells` darkened."""
    grid = evidence.detector.grid
    image = evidence.inputs[evidence.good[0]].copy()
    mask = np.kron(cells, np.ones((grid.stride, grid.stride), np.bool_))
    image[~mask] = image[~mask] // 3
    return evidence.shown(image)
