"""How much of the score lies in the border, the corners and the background of the images; good and anomalous asked
apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from fcdd.regions import components

from .chance import FEWEST, LEVEL, ODDS, detectable, mean_interval
from .evidence import Evidence
from .findings import Finding, Illustration, Question, Severity

BORDER = 1 / 12  # of each side
CORNER = 1 / 6
NEARLY_ALL = 0.9  # of the region of interest
ABOVE = 2.0  # a zone holds too much of the score from so many times its share of the area,
MOSTLY = 0.5  # or from this share of the score, whichever is less
NOTICED = 0.9  # share of the score that has to be noticed, else there are too few images to say
KINDS = ("good", "anomalous")
OFFER = (
    "Look at the images that score there. If the part does not reach there, train again with --roi and the mask that "
    "lies beside this page (its name ends in .roi.png): outside it, nothing is inspected any more. If the part does "
    "reach there, give more good images."
)
NO_OFFER = "Look at the images that score there, and mark the part with --roi, or give more good images."


def zones(evidence: Evidence) -> dict[str, NDArray[np.bool_]]:
    """Zones by name: the border, the corners and, where it can be told, the background.

    Each is bool (h, w), within the detector's region of interest. A zone that covers none of that region, or nearly all
    of it, is left out: where everything lies in it, it tells nothing.
    """
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
    within = {name: zone & inside for name, zone in found.items()}
    return {name: zone for name, zone in within.items() if 0 < zone.sum() < NEARLY_ALL * inside.sum()}


def _background(evidence: Evidence) -> NDArray[np.bool_] | None:
    """Cells that look like the border all around, where the mean good image shows such: 15 to 85 % of it."""
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


def share_of(evidence: Evidence, zone: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(N,), in [0, 1]: the share of each image's score that comes from the cells of `zone` (h, w)."""
    flat = evidence.cells.reshape(len(evidence.cells), -1)
    weight = np.take_along_axis(flat, evidence.hot, 1).astype(np.float64)
    return np.asarray((weight * zone.ravel()[evidence.hot]).sum(1) / np.maximum(weight.sum(1), 1e-12))


@dataclass(frozen=True)
class Held:
    """What one zone holds of the score of one kind of images, all as shares in [0, 1] except `images`."""

    zone: str
    kind: str  # "good" or "anomalous"
    images: int
    area: float  # of the zone, in the region of interest
    share: float  # of the score, on average
    low: float  # the least that the average share may be, given chance
    smallest: float  # average share that would be flagged with probability `POWER`; may be above 1

    @property
    def too_much(self) -> bool:
        """Whether the zone holds more than it should, beyond chance."""
        return self.images >= FEWEST and self.low > limit_of(self.area)

    @property
    def told(self) -> bool:
        """Whether so many images allow a verdict."""
        return self.images >= FEWEST and (self.too_much or self.smallest <= NOTICED)


def limit_of(area: float) -> float:
    """The share of the score above which a zone of `area` (a share as well) holds too much."""
    return min(ABOVE * area, MOSTLY)


def held_by(evidence: Evidence) -> list[Held]:
    """What each zone holds of the score of good and, where there are any, of anomalous images."""
    found, inside = zones(evidence), int(evidence.detector.inside.sum())
    groups = {kind: group for kind, group in zip(KINDS, (evidence.good, evidence.bad), strict=True) if len(group)}
    error = LEVEL / max(1, len(found) * len(groups))
    asked = []
    for name, zone in found.items():
        share, area = share_of(evidence, zone), float(zone.sum() / inside)
        for kind, group in groups.items():
            low = mean_interval(share[group], error)[0]
            smallest = limit_of(area) + detectable(share[group], error)
            asked.append(Held(name, kind, len(group), area, float(share[group].mean()), low, smallest))
    return asked


def answer(evidence: Evidence) -> Finding:
    """Whether the score comes from the margins, of good or of anomalous images; a region of interest where it does."""
    asked = held_by(evidence)
    figures = {f"{one.zone}_area": one.area for one in asked} | {f"{one.zone}_{one.kind}": one.share for one in asked}
    flagged = sorted((one for one in asked if one.too_much), key=lambda one: (one.kind, one.area - one.low))
    region = region_without(evidence, {one.zone for one in flagged}) if flagged else None
    severity, title, remedy = _verdict(asked, flagged, region is not None)
    return Finding(
        Question.HEAT,
        severity,
        title,
        " ".join(_sentence(kind, [one for one in asked if one.kind == kind]) for kind in KINDS).strip(),
        remedy,
        means(evidence),
        effect=max((one.low - one.area for one in flagged), default=0.0),
        figures=figures,
        power=_power(asked),
        region=region,
    )


def _verdict(asked: list[Held], flagged: list[Held], offered: bool) -> tuple[Severity, str, str]:
    """Severity, title and remedy; `flagged` has the worst first, `offered` says whether there is a mask for --roi."""
    if flagged:
        worst = flagged[0]
        serious = worst.kind == "anomalous" and worst.low - worst.area > 0.25
        much = "Most" if worst.share > MOSTLY else "Much"
        return (
            Severity.MEDIUM if serious else Severity.LOW,
            f"{much} of the score of {worst.kind} images comes from the {worst.zone}",
            OFFER if offered else NO_OFFER,
        )
    if not asked:
        return Severity.NONE, "The region of interest has no margins to ask about", "Nothing to do."
    if not all(one.told for one in asked):
        kinds = " and ".join(kind for kind in KINDS if any(one.kind == kind and not one.told for one in asked))
        return (
            Severity.UNKNOWN,
            f"Too few to say whether the score of {kinds} images comes from the margins",
            "Give more images of this kind, and look at the mean heat below.",
        )
    return Severity.NONE, "The margins hold no more of the score than they should", "Nothing to do."


def _sentence(kind: str, asked: list[Held]) -> str:
    shares = ", ".join(f"{one.zone} {one.share:.0%} of the score on {one.area:.0%} of the area" for one in asked)
    return f"Of the score of {kind} images: {shares}." if asked else ""


def _power(asked: list[Held]) -> str:
    """What would have been noticed, for each kind of images."""
    said = []
    for kind in KINDS:
        own = [one for one in asked if one.kind == kind]
        if not own:
            continue
        if own[0].images < FEWEST:
            said.append(f"{own[0].images} {kind} images are fewer than the {FEWEST} this question needs.")
            continue
        from_ = ", ".join(f"{one.zone} {f'from {s:.0%}' if (s := one.smallest) <= 1 else 'none'}" for one in own)
        said.append(f"With {own[0].images} {kind} images, these shares of the score would be noticed: {from_}.")
    rule = (
        f"Shares of {MOSTLY:.0%}, or {ABOVE:.0f} times the area, are too much; a verdict takes that {NOTICED:.0%} would"
    )
    return " ".join([*said, f"{rule} be noticed {ODDS}."]) if said else ""


def region_without(evidence: Evidence, names: set[str]) -> NDArray[np.bool_] | None:
    """The region of interest (H, W) of the detector's input without the zones `names`; None where nothing is left.

    One cell around the part stays in: a defect may lie on its edge.
    """
    found, grid = zones(evidence), evidence.detector.grid
    kept = evidence.detector.inside.copy()
    for name in names:
        zone = found[name]
        kept &= ndimage.binary_dilation(~zone, np.ones((3, 3))) if name == "background" else ~zone
    if not kept.any():
        return None
    places = [np.minimum(np.arange(n) * m // n, m - 1) for n, m in zip(grid.shape, kept.shape, strict=True)]
    return np.asarray(kept[np.ix_(*places)])


def means(evidence: Evidence) -> list[Illustration]:
    """Mean maps of all images and of each kind (the largest five)."""
    kinds = sorted(set(evidence.kinds), key=lambda kind: -list(evidence.kinds).count(kind))
    shown = [Illustration(f"mean heat of all {len(evidence.cells)}", evidence.map(evidence.cells.mean(0)))]
    for kind in kinds[:5]:
        members = np.array([one == kind for one in evidence.kinds])
        shown.append(Illustration(f"{kind}, {members.sum()}", evidence.map(evidence.cells[members].mean(0))))
    return shown
