"""What images look like as a whole, and whether a batch still looks as the calibration images did. Needs no torch.

Thresholds hold for the light, the focus and the distance of the calibration images. Where a batch was taken under
others, its scores mean less, and only the images themselves can tell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fcdd import images
from fcdd.detector import drift
from fcdd.errors import ModelError

Floats = NDArray[np.float64]
LEVEL = 0.01  # chance that a batch of the same process is called different, over all traits together
FEWEST = 5  # images on either side: fewer tell light from chance too badly
SHIFT = 1.5  # spreads of the calibration images: a smaller change of the median is part of what they show themselves
MOST = 1000  # calibration images whose looks a model keeps
QUIET = 8.0  # gray levels around the border's that still count as background


class Trait(NamedTuple):
    """One thing that is measured: its name, what a low and a high value are called, and in which unit it changes.

    `floor` is a spread that every set of images may have, so that almost equal ones raise no alarm.
    """

    name: str
    low: str
    high: str
    floor: float
    unit: str = "%"  # of a logarithm; else gray levels


TRAITS = (
    Trait("brightness", "darker", "brighter", 2.0, "gray levels"),
    Trait("contrast", "less contrast", "more contrast", 2.0, "gray levels"),
    Trait("sharpness", "blurred", "sharper", 0.07),
    Trait("red", "greener", "redder", 0.02),
    Trait("blue", "yellower", "bluer", 0.02),
    Trait("extent", "smaller in view", "larger in view", 0.02),
    Trait("detail", "coarser", "finer", 0.15),
)
FLOORS = np.array([trait.floor for trait in TRAITS])


def measure(pixels: NDArray[np.uint8]) -> Floats:
    """RGB (H, W, 3), of at least 8 pixels a side → the values (7,) of TRAITS.

    With L the luma, F and C the mean |Laplacian| of L and of L at a quarter of the size: mean L, standard deviation
    of L, ln F / contrast, ln R / G and ln B / G of the mean colour, ln of the extent (root mean square distance from
    its centre of what differs from the border, in sides of the image), ln C / contrast. All but the first two are
    the same at any brightness.
    """
    luma = images.luma(pixels).astype(np.float32)
    quarter = (max(4, luma.shape[0] // 4), max(4, luma.shape[1] // 4))
    small = images.luma(images.resize(pixels, quarter)).astype(np.float32)
    fine, coarse = _detail(luma), _detail(small)
    red, green, blue = pixels.reshape(-1, 3).mean(0) + 1
    contrast = float(luma.std())
    values = [
        float(luma.mean()),
        contrast,
        math.log(fine / (contrast + 1)),
        math.log(red / green),
        math.log(blue / green),
        math.log(_extent(small)),
        math.log(coarse / (contrast + 1)),
    ]
    return np.array(values, np.float64)


def _detail(luma: NDArray[np.float32]) -> float:
    """The mean |Laplacian|; a tenth of a level more, because a flat image has no logarithm."""
    laplacian = 4 * luma[1:-1, 1:-1] - luma[:-2, 1:-1] - luma[2:, 1:-1] - luma[1:-1, :-2] - luma[1:-1, 2:]
    return float(np.abs(laplacian).mean()) + 0.1


def _extent(luma: NDArray[np.float32]) -> float:
    border = np.median(np.concatenate([luma[0], luma[-1], luma[:, 0], luma[:, -1]]))
    weight = np.maximum(np.abs(luma - border) - QUIET, 0) + 1e-3
    rows, columns = ((np.arange(side) + 0.5) / side for side in luma.shape)
    total = float(weight.sum())
    moments = ((weight.sum(1 - axis), place) for axis, place in ((0, rows), (1, columns)))
    spreads = [float(w @ place**2) / total - (float(w @ place) / total) ** 2 for w, place in moments]
    return math.sqrt(sum(spreads))


@dataclass(frozen=True)
class Change:
    """A trait of which a batch has another median than the calibration images."""

    trait: str
    words: str  # such as "darker by 27 gray levels"
    usual: float  # medians
    now: float
    p_value: float


@dataclass(frozen=True)
class Comparison:
    """Whether a batch looks as the calibration images do."""

    images: int
    enough: bool  # whether there are images enough to say so
    changes: tuple[Change, ...]  # the largest first

    @property
    def sentence(self) -> str:
        """What differs and what to do about it; empty where nothing does."""
        return self.told("These")

    def told(self, which: str) -> str:
        """The same of "these" images or of "the last"."""
        if not self.changes:
            return ""
        listed = ", ".join(change.words for change in self.changes)
        return (
            f"{which} {self.images} images do not look like the calibration images: {listed}. The verdicts on them are "
            "less sure, and what was promised of false rejects does not hold. Check lamp, focus and distance; if parts "
            "shall look like this from now on, calibrate on new good images: fcdd calibrate MODEL NEW_GOOD"
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "sentence": self.sentence}


def compare(usual: Floats, new: Floats, level: float = LEVEL) -> Comparison:
    """Traits (n, 7) of calibration images against those of a batch (m, 7).

    A trait has changed where a Kolmogorov–Smirnov test says so at `level` / 7, so that all together give a false
    alarm with at most that chance, and where its median moved by more than SHIFT · √(σ² + floor²), σ the robust
    spread at calibration. Medians, because a batch with defects, even many, is not a batch under another light.
    """
    n, m = len(usual), len(new)
    # Of so few images even the plainest change, all beyond all others, could be chance: p = 2 / (n + m over m).
    if min(n, m) < FEWEST or 2 / math.comb(n + m, m) > level / len(TRAITS):
        return Comparison(len(new), False, ())
    middle, now = np.median(usual, 0), np.median(new, 0)
    moved = (now - middle) / np.hypot(spread(usual), FLOORS)
    changes = []
    for k in sorted(np.flatnonzero(np.abs(moved) > SHIFT).tolist(), key=lambda k: -abs(moved[k])):
        _, p = drift.compare(np.sort(usual[:, k]), np.sort(new[:, k]))
        if p <= level / len(TRAITS):
            words = _words(TRAITS[k], float(now[k] - middle[k]))
            changes.append(Change(TRAITS[k].name, words, float(middle[k]), float(now[k]), p))
    return Comparison(len(new), True, tuple(changes))


def spread(values: NDArray[Any]) -> Floats:
    """The robust standard deviation 1.4826 · median |x − median x| along the first axis."""
    return np.asarray(1.4826 * np.median(np.abs(values - np.median(values, 0)), 0), np.float64)


def _words(trait: Trait, change: float) -> str:
    amount = f"{abs(change):.0f} {trait.unit}" if trait.unit != "%" else f"{100 * math.expm1(abs(change)):.0f} %"
    return f"{trait.high if change > 0 else trait.low} by {amount}"


def to_dict(looks: Floats | None) -> dict[str, Any] | None:
    """As a model file keeps the looks (n, 7) of its calibration images; `from_dict` gives them back."""
    if looks is None:
        return None
    return {"traits": [trait.name for trait in TRAITS], "values": np.round(looks, 5).tolist()}


def from_dict(data: Mapping[str, Any] | None) -> Floats | None:
    """None for files that have none, or other traits than are measured now; ModelError for what is no such thing."""
    if data is None or data.get("traits") != [trait.name for trait in TRAITS]:
        return None
    values = np.asarray(data.get("values"), np.float64)
    if values.ndim != 2 or values.shape[1] != len(TRAITS) or not np.isfinite(values).all():
        raise ModelError(f"looks must be rows of {len(TRAITS)} finite numbers")
    return values


def some(looks: Sequence[Floats]) -> Floats | None:
    """At most MOST of the looks (7,), evenly taken, as (n, 7)."""
    return np.asarray(np.round(np.stack(looks[:: -(-len(looks) // MOST)]), 5), np.float64) if looks else None
