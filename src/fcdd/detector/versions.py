"""The calibrations that a model has had: every new one is a version, and the ones before are kept inside the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from fcdd.detector.calibration import Calibration
from fcdd.errors import CalibrationError

KEPT = 50  # versions besides the active one, so that a file that is calibrated every night does not grow for ever


@dataclass(frozen=True)
class Version:
    """One calibration, its number, and the number of the one that it took the place of; None for the first."""

    number: int
    before: int | None
    calibration: Calibration


@dataclass(frozen=True)
class Versions:
    """The active calibration and others, which it came from or which were undone."""

    active: Version
    others: tuple[Version, ...] = ()

    @classmethod
    def first(cls, calibration: Calibration) -> Self:
        return cls(Version(1, None, calibration))

    def with_active(self, calibration: Calibration) -> Self:
        """The same where this calibration is active already; else with one version more, which is."""
        if calibration == self.active.calibration:
            return self
        others = (*self.others, self.active)
        number = 1 + max(version.number for version in others)
        kept = sorted(others, key=lambda version: version.number)[-KEPT:]
        return replace(self, active=Version(number, self.active.number, calibration), others=tuple(kept))

    def undone(self) -> Self:
        """The version that the active one took the place of is active again; nothing is lost."""
        found = [version for version in self.others if version.number == self.active.before]
        if not found:
            raise CalibrationError(
                f"version {self.active.number} is the first calibration that is kept, so there is none to go back to"
            )
        others = tuple(version for version in (*self.others, self.active) if version is not found[0])
        return replace(self, active=found[0], others=others)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, but for the active calibration, which stands beside it."""
        others = [
            {"number": one.number, "before": one.before, "calibration": one.calibration.to_dict()}
            for one in self.others
        ]
        return {"number": self.active.number, "before": self.active.before, "others": others}

    @classmethod
    def from_dict(cls, calibration: Calibration, data: Mapping[str, Any] | None) -> Self:
        """What `to_dict` gave; a file from before there were versions has the first alone."""
        if data is None:
            return cls.first(calibration)
        others = tuple(
            Version(one["number"], one["before"], Calibration.from_dict(one["calibration"])) for one in data["others"]
        )
        numbers = [data["number"], *(one.number for one in others)]
        if not all(isinstance(number, int) for number in numbers) or len(set(numbers)) < len(numbers):
            raise CalibrationError("versions need whole numbers, each another")
        return cls(Version(data["number"], data["before"], calibration), others)
