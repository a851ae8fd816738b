"""Several models on the same images: their figures, the verdicts that differ, and their heatmaps side by side."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from fcdd import images, metrics
from fcdd.detector.calibration import Verdict
from fcdd.detector.judge import Judge
from fcdd.detector.result import Result
from fcdd.files import utf8, write_atomically
from fcdd.report import html, inspection
from fcdd.report.drawing import words
from fcdd.report.inspection import Evaluation, Labelled
from fcdd.report.page import SYMBOLS

PAGE, TABLE, FIGURES = "index.html", "verdicts.csv", "comparison.json"


@dataclass(frozen=True)
class Judged:
    """One model's figures, and what it says of each image, in the images' order."""

    name: str
    evaluation: Evaluation
    trained_on: int  # how many of the images it has learnt from
    limit: float  # score above which it rejects
    results: list[dict[str, Any]] = field(default_factory=list)  # `Result.to_dict` and the overlay's place

    def verdict(self, index: int) -> Verdict:
        return Verdict(self.results[index]["verdict"])


@dataclass(frozen=True)
class Difference:
    """What changes when `other` takes the place of `first`, the model that is named first."""

    first: str
    other: str
    images: int
    changed: int  # how many of them get another verdict
    found: int | None  # defects that the first passes and the other does not; None where nothing is labelled
    missed: int | None  # the reverse
    accepted: int | None  # good parts that the first rejects and the other does not
    rejected: int | None  # the reverse
    auroc: float | None  # the difference of the image AUROC, and its 95 % interval
    auroc_low: float | None
    auroc_high: float | None

    @property
    def worse(self) -> bool:
        """Whether there is a mistake that the first model does not make."""
        return bool(self.missed or self.rejected)

    def sentences(self) -> list[str]:
        told = [f"{self.other} gives {self.changed:,} of {self.images:,} images another verdict than {self.first}."]
        if self.found == self.missed == 0:
            told.append("Both pass the same defects.")
        elif self.found is not None and self.missed is not None:
            found, missed = _count(self.found, "defect"), _count(self.missed, "defect")
            told.append(f"It finds {found} that {self.first} passes, and passes {missed} that {self.first} finds.")
        if self.accepted == self.rejected == 0:
            told.append("Both reject the same good parts.")
        elif self.accepted is not None and self.rejected is not None:
            rejected, accepted = _count(self.rejected, "good part"), _count(self.accepted, "good part")
            told.append(
                f"It rejects {rejected} that {self.first} accepts, and accepts {accepted} that {self.first} rejects."
            )
        if self.auroc is not None and self.auroc_low is not None and self.auroc_high is not None:
            told.append(f"{self._ranking()} (image AUROC {self.auroc:+.4f}, 95 % interval {self._interval()}).")
        return told

    def _ranking(self) -> str:
        assert self.auroc_low is not None
        assert self.auroc_high is not None
        if self.auroc_low > 0:
            return "It ranks defects above good parts better"
        if self.auroc_high < 0:
            return "It ranks defects above good parts worse"
        return "These images do not tell which of the two ranks better"

    def _interval(self) -> str:
        return f"{self.auroc_low:+.4f} to {self.auroc_high:+.4f}"


def write(
    detectors: Mapping[str, Judge], labelled: Labelled, root: Path, folder: Path, quiet: bool = False
) -> tuple[list[Judged], list[Difference]]:
    """Judge all images by all `detectors`, by name, and write index.html, verdicts.csv, comparison.json and the images
    into `folder`. Labels may be None, where nothing is known of the images below `root`."""
    names = [Path(path).relative_to(root) for path in labelled.paths]
    drawn = [Path(*place.parts[1:]) for place in inspection.overlay_names(names)]
    judged = [
        _judged(name, detector, labelled, drawn, folder, number, quiet)
        for number, (name, detector) in enumerate(detectors.items(), 1)
    ]
    differences = [difference(judged[0], other, labelled.labels) for other in judged[1:]]
    shown = [str(name) for name in names]
    write_atomically(folder / TABLE, utf8(_table(judged, labelled, shown)))
    write_atomically(folder / FIGURES, utf8(json.dumps(figures(judged, differences, labelled, shown), indent=1)))
    _page(judged, differences, labelled, shown, drawn, root, folder / PAGE)
    return judged, differences


def _judged(
    name: str, detector: Judge, labelled: Labelled, drawn: Sequence[Path], folder: Path, number: int, quiet: bool
) -> Judged:
    """One model on all images; its overlays go to model-1/, model-2/ …, and with the first the images to input/."""
    results: list[dict[str, Any]] = []

    def keep(array: NDArray[np.uint8], result: Result) -> None:
        place = drawn[len(results)]
        overlay = Path(f"model-{number}") / place
        images.save_png(inspection.explained(detector, array, result), folder / overlay, fast=True)
        if number == 1:
            images.save_png(array, folder / "input" / place, fast=True)
        results.append({**result.to_dict(), "overlay": overlay.as_posix()})

    evaluation, _, _ = inspection.evaluate(detector, labelled, quiet, each=keep)
    known = sum(detector.trained_on(path) for path in labelled.paths)
    return Judged(name, evaluation, known, detector.calibration.limits.reject, results)


def difference(first: Judged, other: Judged, labels: Sequence[int | None]) -> Difference:
    """What changes from one model to another on images with these labels: 0 good, 1 defective, None unknown."""
    pairs = [(label, first.verdict(i), other.verdict(i)) for i, label in enumerate(labels)]

    def counted(label: int, verdict: Verdict) -> tuple[int, int] | tuple[None, None]:
        """How many images of this label only the first, and how many only the other, gives this verdict."""
        if label not in labels:
            return None, None
        before = sum(known == label and a == verdict != b for known, a, b in pairs)
        return before, sum(known == label and a != verdict == b for known, a, b in pairs)

    found, missed = counted(1, Verdict.OK)
    accepted, rejected = counted(0, Verdict.NG)
    scores, others = ([one["score"] for one in model.results] for model in (first, other))
    both = set(labels) == {0, 1}
    truth = [label or 0 for label in labels]
    area, low, high = metrics.auroc_difference(scores, others, truth) if both else (None, None, None)
    changed = sum(a != b for _, a, b in pairs)
    return Difference(first.name, other.name, len(pairs), changed, found, missed, accepted, rejected, area, low, high)


def figures(
    judged: Sequence[Judged], differences: Sequence[Difference], labelled: Labelled, names: Sequence[str]
) -> dict[str, Any]:
    """All that is known, for scripts."""
    return {
        "images": len(names),
        "models": [{"name": one.name, "trained_on": one.trained_on, **asdict(one.evaluation)} for one in judged],
        "differences": [{**asdict(one), "worse": one.worse} for one in differences],
        "changed": [
            {
                "file": names[i],
                "kind": labelled.kinds[i],
                "label": labelled.labels[i],
                "verdicts": {one.name: str(one.verdict(i)) for one in judged},
                "scores": {one.name: one.results[i]["score"] for one in judged},
            }
            for i in changed(judged)
        ],
    }


def changed(judged: Sequence[Judged]) -> list[int]:
    """The images on whose verdict not all models agree."""
    return [i for i in range(len(judged[0].results)) if len({one.verdict(i) for one in judged}) > 1]


def warnings(judged: Sequence[Judged]) -> list[str]:
    """What makes a comparison unfair."""
    return [
        f"{one.name} has learnt from {one.trained_on:,} of these images; "
        "its figures are better than they will be on new parts."
        for one in judged
        if one.trained_on
    ]


def _table(judged: Sequence[Judged], labelled: Labelled, names: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    columns = [f"{one.name} {what}" for one in judged for what in ("verdict", "score", "times_the_limit")]
    writer.writerow(["file", "kind", "label", *map(inspection.spreadsheet_cell, columns)])
    for i, name in enumerate(names):
        known = labelled.labels[i]
        cells = [[one.verdict(i), one.results[i]["score"], _ratio(one, i)] for one in judged]
        about = [inspection.spreadsheet_cell(name), inspection.spreadsheet_cell(labelled.kinds[i])]
        writer.writerow([*about, "" if known is None else known, *(cell for group in cells for cell in group)])
    return text.getvalue()


def _ratio(one: Judged, index: int) -> float:
    """The score as a multiple of the model's reject limit, which makes scores of different models comparable."""
    score: float = one.results[index]["score"]
    return score / one.limit if one.limit > 0 else score


def _page(
    judged: Sequence[Judged],
    differences: Sequence[Difference],
    labelled: Labelled,
    names: Sequence[str],
    drawn: Sequence[Path],
    root: Path,
    path: Path,
) -> None:
    disagreed = set(changed(judged))
    items = [
        {
            "name": name,
            "kind": labelled.kinds[i],
            "changed": i in disagreed,
            "gap": max(_ratio(one, i) for one in judged) - min(_ratio(one, i) for one in judged),
            "input": quote(os.fsencode(Path("input", drawn[i]).as_posix())),
            "models": [
                {
                    "verdict": one.verdict(i),
                    "words": words(one.results[i]["score"], one.limit),
                    "file": quote(os.fsencode(one.results[i]["overlay"])),
                }
                for one in judged
            ],
        }
        for i, name in enumerate(names)
    ]
    page = html.parts(
        "report/comparison.html",
        styles=("report/comparison.css",),
        scripts=("report/gallery.js", "report/comparison.js"),
        sources="'self' file:",  # as on the page of results, whose images are files beside it too
        title=" and ".join(one.name for one in judged) if len(judged) == 2 else f"{len(judged)} models",
        subtitle=f"{len(names):,} images of {root}",
        symbols=SYMBOLS,
        verdicts=list(Verdict),
        models=[_row(one, labelled.labels) for one in judged],
        labelled=any(label is not None for label in labelled.labels),
        differences=[{"other": one.other, "sentences": one.sentences()} for one in differences],
        warnings=warnings(judged),
        items=items,
    )
    write_atomically(path, map(utf8, page))


def _row(one: Judged, labels: Sequence[int | None]) -> dict[str, Any]:
    """A line of the page's table: counts of verdicts by label, and the figures for experts."""
    given = [(label, one.verdict(i)) for i, label in enumerate(labels)]
    counts = {verdict: sum(found == verdict for _, found in given) for verdict in Verdict}
    evaluation = one.evaluation
    shown = {"AUROC": evaluation.image_auroc, "pixel AUROC": evaluation.pixel_auroc, "AUPRO": evaluation.aupro}
    return {
        "name": one.name,
        "counts": counts,
        "defects": sum(label == 1 for label in labels),
        "passed": sum(label == 1 and found is Verdict.OK for label, found in given),
        "good": sum(label == 0 for label in labels),
        "rejected": sum(label == 0 and found is Verdict.NG for label, found in given),
        "figures": {name: f"{value:.4f}" if value is not None else "–" for name, value in shown.items()},
    }


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
