"""What an audit says: findings with a severity, images, a plain sentence and what to do about it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from fcdd.anomalies.cues import Cue
from fcdd.errors import DataError


class Severity(StrEnum):
    """How much a finding matters; from the worst."""

    HIGH = "high"  # shown to move the score, beyond chance, and not the part itself: mend it
    MEDIUM = "medium"  # beyond chance, but whether it matters is for a person to say
    LOW = "low"  # worth a look
    UNKNOWN = "unknown"  # asked, but of too few images to say
    NONE = "none"  # asked, and in order


class Question(StrEnum):
    """What the audit asks, in the order of the page."""

    RECURRING = "recurring"
    PLANTED = "planted"
    HEAT = "heat"
    STRATEGIES = "strategies"
    METADATA = "metadata"
    FAITHFULNESS = "faithfulness"
    FIELDS = "fields"


@dataclass(frozen=True)
class Illustration:
    """A image as a data URI, and what it shows."""

    caption: str
    source: str


@dataclass(frozen=True)
class Finding:
    """One answer to one question.

    `effect` ranks findings of one severity, `figures` are the numbers behind it, `files` the images it is about.
    """

    question: Question
    severity: Severity
    title: str
    sentence: str
    remedy: str
    images: Sequence[Illustration] = ()
    effect: float = 0.0
    figures: Mapping[str, float] = field(default_factory=dict)
    files: Sequence[str] = ()
    cue: Cue | None = None
    power: str = ""  # what could have been noticed in so many images
    region: NDArray[np.bool_] | None = None  # (H, W): the region of interest offered as a remedy
    chart: Markup | str = ""  # made by fcdd.report.charts; plain text would be escaped

    def to_dict(self) -> dict[str, Any]:
        """For JSON, without the images."""
        return {
            "question": str(self.question),
            "severity": str(self.severity),
            "title": self.title,
            "sentence": self.sentence,
            "remedy": self.remedy,
            "effect": self.effect,
            "figures": dict(self.figures),
            "files": list(self.files),
            "cue": self.cue.to_dict() if self.cue else None,
            "power": self.power,
            "offers_roi": self.region is not None,
        }


@dataclass(frozen=True)
class Audit:
    """All findings, worst first, and what they were found on."""

    model: str
    parts: str
    images: dict[str, int]  # kind → how many were looked at
    scores: dict[str, float]  # file → score
    findings: Sequence[Finding]
    seconds: float

    @property
    def region(self) -> NDArray[np.bool_] | None:
        """The region of interest (H, W) that the findings offer: where all that offer one agree to look."""
        offered = [finding.region for finding in self.findings if finding.region is not None]
        return np.logical_and.reduce(offered) if offered else None

    @property
    def counts(self) -> dict[str, int]:
        """How many findings there are of each severity."""
        return {str(s): sum(finding.severity == s for finding in self.findings) for s in Severity}

    def reaches(self, limit: str) -> bool:
        """Whether a finding is as severe as `limit` ("high", "medium" or "low") or more so."""
        ranks = list(Severity)
        return any(ranks.index(finding.severity) <= ranks.index(Severity(limit)) for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """For JSON, without the images; `read` reads it."""
        return {
            "model": self.model,
            "parts": self.parts,
            "images": self.images,
            "counts": self.counts,
            "seconds": self.seconds,
            "findings": [finding.to_dict() for finding in self.findings],
            "scores": self.scores,
        }


def ranked(findings: Sequence[Finding]) -> list[Finding]:
    """Worst first; within a severity the largest effect first."""
    ranks = list(Severity)
    return sorted(findings, key=lambda finding: (ranks.index(finding.severity), -finding.effect))


def read(path: Path) -> dict[str, Any]:
    """What `Audit.to_dict` wrote to the JSON file `path`; DataError for anything else."""
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        missing = {"model", "parts", "findings", "scores"} - set(values)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file. Give the JSON file that `fcdd audit` wrote.") from None
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path}: not a JSON file of `fcdd audit` ({error}). Run the audit again.") from None
    if missing:
        raise DataError(f"{path}: not a JSON file of `fcdd audit`, it has no {', '.join(sorted(missing))}.")
    return values
