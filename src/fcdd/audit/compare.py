"""Before and after mending: what the cues still do, what is still detected, which verdicts changed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcdd import metrics
from fcdd.anomalies.cues import Cue
from fcdd.detector.detector import Detector
from fcdd.errors import DataError
from fcdd.folders import Labelled
from fcdd.reading import pixels
from fcdd.report import html

from .findings import read
from .page import STYLE
from .run import read_parts

PAIRS = 40  # good images the cues are put into


@dataclass(frozen=True)
class Side:
    """One detector: what the cues do to good images, and how it does without them."""

    model: str
    shift: float  # of the score of good images, over all cues
    rejected: float  # share of good images rejected with a cue in them
    rejected_clean: float  # … and as they are
    auroc: float  # on the clean images


@dataclass(frozen=True)
class Comparison:
    """Two detectors, tried with the same cues on the same images."""

    before: Side
    after: Side
    pictures: int  # clean ones
    changed: dict[str, int]  # "NG → OK" → how many clean images

    @property
    def reduction(self) -> float:
        """The share of the score shift that is gone; each shift is measured in its own detector's score."""
        return 1 - abs(self.after.shift / self.before.shift) if self.before.shift else 0.0

    def to_dict(self) -> dict[str, Any]:
        """For JSON: all fields, the reduction, and how much AUROC was won."""
        return {**asdict(self), "reduction": self.reduction, "auroc_change": self.after.auroc - self.before.auroc}


def compare(before: Path, after: Path, clean: Path | None, skip_bad: bool = False) -> Comparison:
    """Two audits' JSON files: the cues of both, tried on both models.

    Detection and verdicts are those on `clean`, labelled images without cues; where it is not given, on the parts of
    the second audit without those that carry a cue.
    """
    first, second = read(before), read(after)
    cues = [Cue.from_dict(f["cue"]) for told in (first, second) for f in told["findings"] if f.get("cue")]
    if not cues:
        raise DataError(f"{before} and {after}: neither has found a cue, so there is nothing to compare.")
    carriers = {name for told in (first, second) for f in told["findings"] if f.get("cue") for name in f["files"]}
    parts = read_parts(clean or Path(second["parts"]), skip_bad)
    kept = [i for i, path in enumerate(parts.paths) if str(path) not in carriers]
    parts = Labelled(*([column[i] for i in kept] for column in parts))  # type: ignore[arg-type]
    one, one_verdicts = _side(first["model"], parts, cues)
    other, other_verdicts = _side(second["model"], parts, cues)
    changed: dict[str, int] = {}
    for old, new in zip(one_verdicts, other_verdicts, strict=True):
        if old != new:
            changed[f"{old} → {new}"] = changed.get(f"{old} → {new}", 0) + 1
    return Comparison(one, other, len(kept), changed)


def _side(model: str, parts: Labelled, cues: list[Cue]) -> tuple[Side, list[str]]:
    """The figures of a detector, and its verdicts on the clean images."""
    detector = Detector.load(Path(model))
    scores = detector.score_samples(parts.paths)
    labels = np.array(parts.labels)
    good = np.flatnonzero(labels == 0)[:PAIRS]
    inputs = [detector.input(pixels(parts.paths[i])) for i in good]
    marked = detector.score_samples(cue.paste(image, n) for cue in cues for n, image in enumerate(inputs))
    shift = marked.reshape(len(cues), -1) - scores[good]
    side = Side(
        model,
        float(shift.mean()),
        _rejected(detector, marked),
        _rejected(detector, scores[good]),
        metrics.auroc(scores, labels),
    )
    return side, [str(detector.calibration.verdict(float(score))) for score in scores]


def _rejected(detector: Detector, scores: NDArray[np.float64]) -> float:
    return float(np.mean([detector.calibration.verdict(float(score)) == "NG" for score in scores]))


def lines(told: Comparison) -> list[str]:
    """The comparison as a table for the terminal, line by line."""
    rows = [f"{name:42} {old:>10} {new:>10}" for name, old, new in _rows(told)]
    changes = ", ".join(f"{count} × {change}" for change, count in told.changed.items()) or "none"
    return [
        f"{'':42} {'before':>10} {'after':>10}",
        *rows,
        f"the cue moves the score by {told.reduction:.0%} less",
        f"verdicts changed on {told.pictures} clean images: {changes}",
    ]


def _rows(told: Comparison) -> list[tuple[str, str, str]]:
    one, other = told.before, told.after
    return [
        ("score shift of good images by the cue", f"{one.shift:.3g}", f"{other.shift:.3g}"),
        ("good images rejected with the cue", f"{one.rejected:.0%}", f"{other.rejected:.0%}"),
        ("good images rejected without", f"{one.rejected_clean:.0%}", f"{other.rejected_clean:.0%}"),
        ("AUROC on clean images", f"{one.auroc:.4f}", f"{other.auroc:.4f}"),
    ]


def page(told: Comparison) -> str:
    """The comparison as a page."""
    return html.page(
        "audit/compare.html",
        styles=[STYLE],
        title="Before and after mending",
        subtitle=f"{Path(told.before.model).name} before, {Path(told.after.model).name} after",
        told=told,
        rows=_rows(told),
    )
