"""What the doctor says: a `Finding` for each thing that is wrong or worth knowing, a `Diagnosis` of them all."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar, get_args

from fcdd.detector.settings import Settings

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)  # gravest first
GROUPS = TRAIN, TEST, DEFECTS, MASKS = "train good", "test good", "defects", "masks"

FEW = 50  # good images: with fewer, calibration can promise little
LISTED = 10  # files of a finding, and findings of a kind, in the text

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or worth knowing; `files` are relative to the folder that was checked."""

    severity: Severity
    code: str
    files: tuple[str, ...]
    message: str
    advice: str


@dataclass(frozen=True)
class Diagnosis:
    """All findings, errors first; `counts` are usable files in each group, `sizes` images of each W × H, most first."""

    root: str
    findings: tuple[Finding, ...]
    counts: dict[str, int]
    sizes: dict[str, int]

    @property
    def ok(self) -> bool:
        """Whether training can start: no finding is an error."""
        return not any(finding.severity == "error" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"ok": self.ok, **asdict(self)}

    def text(self) -> str:
        """For the terminal: what there is, what was found, errors first, and what it means."""
        lines = _inventory(self)
        for severity in SEVERITIES:
            found = [finding for finding in self.findings if finding.severity == severity]
            if found:
                lines += ["", f"{many(len(found), severity)}:", *_section(found)]
        return "\n".join([*lines, "", "No errors: training can start." if self.ok else "Remedy the errors first."])


def _inventory(diagnosis: Diagnosis) -> list[str]:
    groups = [f"{count} {group}" for group, count in diagnosis.counts.items() if count]
    lines = [f"{diagnosis.root}: {', '.join(groups) or 'no usable images'}."]
    sizes = [f"{size} ({count})" for size, count in diagnosis.sizes.items()]
    if sizes:
        more = f" and {len(sizes) - 3} other sizes" if len(sizes) > 3 else ""
        lines.append(f"Sizes: {', '.join(sizes[:3])}{more}.")
    if diagnosis.counts[TRAIN] >= FEW:
        lines.append(promise(diagnosis.counts[TRAIN]))
    return lines


def _section(found: Sequence[Finding]) -> list[str]:
    """Findings of one severity; those of one kind share the line of their advice."""
    lines: list[str] = []
    for (_, advice), alike in grouped(found, lambda finding: (finding.code, finding.advice)).items():
        for finding in alike[:LISTED]:
            lines += [f"  {finding.message}", *(f"      {file}" for file in finding.files[:LISTED])]
            if len(finding.files) > LISTED:
                lines.append(f"      and {len(finding.files) - LISTED} more")
        if len(alike) > LISTED:
            lines.append(f"  and {len(alike) - LISTED} more like this.")
        lines.append(f"    → {advice}")
    return lines


def promise(good: int) -> str:
    """What calibration can promise with so many good images: with n held out, at best 1 / (n + 1) false rejects."""
    settings = Settings()
    held = settings.held(good)
    return (
        f"Of {many(good, 'good image')}, {held} ({100 * settings.holdout:.0f} %) are held out for calibration: "
        f"the lowest false-reject rate it can promise is 1 / {held + 1} = {100 / (held + 1):.1f} %."
    )


def many(count: int, thing: str) -> str:
    """A count with its noun in the singular or the plural."""
    return f"{count} {thing}" + ("" if count == 1 else "s")


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Items with equal keys together; keys and items in the order they came."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
