"""Do properties of the file or of the whole image give the label, or the score, away?

Each property is asked by cross-validation: the values of four fifths of the images, in five bins, say how often each
bin is anomalous, and that ranks the remaining fifth. The AUROC of all five fifths is flagged where its confidence
interval, wide enough for all properties together, leaves chance (0.5) below it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from fcdd import metrics

from .chance import LEVEL, ODDS, detectable_auroc, fewest_for_auroc
from .evidence import Evidence
from .findings import Finding, Illustration, Question, Severity
from .properties import VISIBLE, Properties, Values, properties

FOLDS, BINS = 5, 5
STRONG = 0.75  # AUROC from which a property may stand for the label


@dataclass(frozen=True)
class Probe:
    """How well one property predicts one target: "the label", or "a high score" among good images."""

    name: str
    target: str
    auroc: float
    low: float
    high: float


@dataclass(frozen=True)
class Target:
    """What a property may give away: `truth` (n,) of the images `rows` (n,)."""

    name: str
    rows: NDArray[np.intp]
    truth: NDArray[np.bool_]

    @property
    def fewer(self) -> int:
        """How many images the smaller of the two classes has."""
        return int(min(self.truth.sum(), (~self.truth).sum()))


def answer(evidence: Evidence, quiet: bool) -> list[Finding]:
    """One finding: all properties, those beyond chance first; what could not be read or asked is said."""
    told = properties(evidence)
    error = LEVEL / max(1, 2 * len(told.known))
    needed = max(2 * FOLDS, fewest_for_auroc(error))
    targets = _targets(evidence)
    asked = [one for one in targets if one.fewer >= needed]
    probes = [
        probe(name, values[target.rows], target.name, target.truth, error)
        for name, values in told.known.items()
        for target in asked
    ]
    flagged = sorted((p for p in probes if p.low > 0.5), key=lambda p: -p.auroc)
    figures = {f"{p.name} → {p.target}": p.auroc for p in probes}
    power = " ".join(_power(target, needed, error) for target in targets)
    left_out = _left_out(told)
    if flagged:
        found = _finding(evidence, flagged, told.known, figures)
        return [replace(found, sentence=found.sentence + left_out, power=power)]
    if len(asked) == len(targets):
        severity, title = Severity.NONE, "No property of file or image gives label or score away"
    else:
        unasked = " or ".join(target.name for target in targets if target not in asked)
        severity, title = Severity.UNKNOWN, f"Too few to say whether a property gives {unasked} away"
    sentence = f"{len(told.known)} properties were asked; none beats chance beyond its confidence interval."
    if not asked:
        sentence = f"{len(told.known)} properties differ between the images."
    return [
        Finding(
            Question.METADATA,
            severity,
            title,
            sentence + left_out,
            "Nothing to do." if severity is Severity.NONE else "Give more images.",
            figures=figures,
            power=power,
        )
    ]


def _targets(evidence: Evidence) -> list[Target]:
    """The label, where there are anomalous images; and whether a good image scores above the median of good ones."""
    scores = evidence.scores[evidence.good]
    high = Target("a high score", evidence.good, scores > np.median(scores))
    if not len(evidence.bad):
        return [high]
    return [Target("the label", np.arange(len(evidence.paths)), evidence.anomalous), high]


def _power(target: Target, needed: int, error: float) -> str:
    """What AUROC would be noticed for a target, or how many images it lacks."""
    ones = int(target.truth.sum())
    counts = f"{len(target.truth) - ones} and {ones}"
    if target.fewer < needed:
        return f"For {target.name} there are {counts} images to tell apart; it takes at least {needed} of each."
    smallest = detectable_auroc(len(target.truth) - ones, ones, error)
    return f"For {target.name} ({counts} images), an AUROC from {smallest:.2f} would be noticed {ODDS}."


def _left_out(told: Properties) -> str:
    """Which metadata made no sense, and in which files."""
    said = [
        f"{name} in {len(files)} of the files ({files[0].name}{', …' if len(files) > 1 else ''})"
        for name, files in told.unusable.items()
    ]
    return f" Left out, because it cannot be read: {'; '.join(said)}." if said else ""


def _finding(evidence: Evidence, flagged: list[Probe], known: dict[str, Values], figures: dict[str, float]) -> Finding:
    strong = [p for p in flagged if p.target == "the label" and p.low > STRONG and p.name not in VISIBLE]
    listed = "; ".join(
        f"{p.name} predicts {p.target} with AUROC {p.auroc:.2f} ({p.low:.2f} to {p.high:.2f})" for p in flagged[:6]
    )
    return Finding(
        Question.METADATA,
        Severity.MEDIUM if strong else Severity.LOW,
        f"{(strong or flagged)[0].name.capitalize()} predicts {(strong or flagged)[0].target}",
        f"{len(flagged)} of {len(figures)} questions beat chance: {listed}. Defects may change a whole image, and a "
        "good detector may follow that; a file's size, camera or date cannot be a defect.",
        "Take good and anomalous images with the same camera, light and settings, and save them alike; then train "
        "and measure again.",
        _extremes(evidence, flagged[0], known),
        effect=flagged[0].auroc - 0.5,
        figures=figures,
    )


def _extremes(evidence: Evidence, found: Probe, known: dict[str, Values]) -> list[Illustration]:
    """Images with the lowest and the highest value of the property."""
    values = known[found.name]
    if values.dtype.kind != "f":
        return []
    low, high = int(np.nanargmin(values)), int(np.nanargmax(values))
    return [
        Illustration(f"{name} {found.name} ({evidence.kinds[i]}): {values[i]:.4g}", evidence.shown(evidence.inputs[i]))
        for name, i in (("lowest", low), ("highest", high))
    ]


def probe(name: str, values: Values, target: str, truth: NDArray[np.bool_], error: float) -> Probe:
    """Cross-validated AUROC of values (N,) for truth (N,), with an interval that misses with probability `error`."""
    guess = np.empty(len(truth))
    for rest, held in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(truth, truth):
        bins, wanted = _binned(values[rest], values[held])
        base = truth[rest].mean()
        count = np.bincount(bins, minlength=BINS + 1)
        hits = np.bincount(bins, truth[rest], minlength=BINS + 1)
        rate = (hits + base) / (count + 1)  # one image's worth of the base rate: an empty bin knows nothing
        guess[held] = np.where(wanted < len(rate), rate[np.minimum(wanted, len(rate) - 1)], base) - base
    low, high = metrics.auroc_interval(guess, truth, 1 - error)
    return Probe(name, target, metrics.auroc(guess, truth), low, high)


def _binned(known: Values, asked: Values) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Bins of the known and the asked values: fifths of the known numbers, or one bin for each known word."""
    if known.dtype.kind == "f":
        numbers = known.astype(np.float64)
        edges = np.nanquantile(numbers, np.arange(1, BINS) / BINS) if not np.isnan(numbers).all() else np.empty(0)
        return _of_numbers(edges, numbers), _of_numbers(edges, asked.astype(np.float64))
    words = np.unique(known)
    place = np.searchsorted(words, asked).clip(0, len(words) - 1)
    return np.searchsorted(words, known), np.where(words[place] == asked, place, len(words) + BINS + 1)


def _of_numbers(edges: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.intp]:
    """Bins (n,) of numbers (n,); those that are missing have one of their own."""
    return np.where(np.isnan(values), BINS, np.searchsorted(edges, values))
