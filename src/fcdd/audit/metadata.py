"""Do properties of the file or of the whole picture give the label, or the score, away?

Each property is asked by cross-validation: the values of four fifths of the pictures, in five bins, say how often each
bin is anomalous, and that ranks the remaining fifth. The AUROC of all five fifths is flagged where its confidence
interval, wide enough for all properties together, leaves chance (0.5) below it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import ExifTags, Image

from fcdd import images, metrics
from fcdd.seeds import generator_of

from .chance import LEVEL
from .evidence import Evidence, Pixels
from .findings import Finding, Picture, Question, Severity

FOLDS, BINS = 5, 5
STRONG = 0.75  # AUROC from which a property may stand for the label
VISIBLE = ("brightness", "contrast", "sharpness", "colour cast")  # what the network sees of a picture as a whole
CAMERA = {ExifTags.Base.Make: "camera make", ExifTags.Base.Model: "camera model", ExifTags.Base.Software: "software"}
TAKEN = (ExifTags.Base.DateTimeOriginal, ExifTags.Base.DateTime)
Values = NDArray[np.float64] | NDArray[np.str_]


@dataclass(frozen=True)
class Probe:
    """How well one property predicts one target: "the label", or "a high score" among good pictures."""

    name: str
    target: str
    auroc: float
    low: float
    high: float


def answer(evidence: Evidence, quiet: bool) -> list[Finding]:
    """One finding: all properties, those beyond chance first."""
    known = properties(evidence)
    targets: list[tuple[str, NDArray[np.intp], NDArray[np.bool_]]] = []
    if min(len(evidence.bad), len(evidence.good)) >= 2 * FOLDS:
        targets.append(("the label", np.arange(len(evidence.paths)), evidence.anomalous))
    if len(evidence.good) >= 4 * FOLDS:
        scores = evidence.scores[evidence.good]
        targets.append(("a high score", evidence.good, scores > np.median(scores)))
    asked = [(name, values, *target) for name, values in known.items() for target in targets]
    probes = [
        probe(name, values[rows], target, truth, LEVEL / len(asked)) for name, values, target, rows, truth in asked
    ]
    if not probes:
        return []
    flagged = sorted((p for p in probes if p.low > 0.5), key=lambda p: -p.auroc)
    figures = {f"{p.name} → {p.target}": p.auroc for p in probes}
    if not flagged:
        return [
            Finding(
                Question.METADATA,
                Severity.NONE,
                "No property of file or picture gives label or score away",
                f"{len(known)} properties were asked; none beats chance beyond its confidence interval.",
                "Nothing to do.",
                figures=figures,
            )
        ]
    return [_finding(evidence, flagged, known, figures)]


def _finding(evidence: Evidence, flagged: list[Probe], known: dict[str, Values], figures: dict[str, float]) -> Finding:
    strong = [p for p in flagged if p.target == "the label" and p.low > STRONG and p.name not in VISIBLE]
    listed = "; ".join(
        f"{p.name} predicts {p.target} with AUROC {p.auroc:.2f} ({p.low:.2f} to {p.high:.2f})" for p in flagged[:6]
    )
    return Finding(
        Question.METADATA,
        Severity.MEDIUM if strong else Severity.LOW,
        f"{(strong or flagged)[0].name.capitalize()} predicts {(strong or flagged)[0].target}",
        f"{len(flagged)} of {len(figures)} questions beat chance: {listed}. Defects may change a whole picture, and a "
        "good detector may follow that; a file's size, camera or date cannot be a defect.",
        "Take good and anomalous pictures with the same camera, light and settings, and save them alike; then train "
        "and measure again.",
        _extremes(evidence, flagged[0], known),
        effect=flagged[0].auroc - 0.5,
        figures=figures,
    )


def _extremes(evidence: Evidence, found: Probe, known: dict[str, Values]) -> list[Picture]:
    """Pictures with the lowest and the highest value of the property."""
    values = known[found.name]
    if values.dtype.kind != "f":
        return []
    low, high = int(np.argmin(values)), int(np.argmax(values))
    return [
        Picture(f"{name} {found.name} ({evidence.kinds[i]}): {values[i]:.4g}", evidence.shown(evidence.inputs[i]))
        for name, i in (("lowest", low), ("highest", high))
    ]


def probe(name: str, values: Values, target: str, truth: NDArray[np.bool_], error: float) -> Probe:
    """Cross-validated AUROC of values (N,) for truth (N,), with an interval that misses with probability `error`."""
    order = torch.randperm(len(truth), generator=generator_of("audit", "folds")).numpy()
    fold = np.empty(len(truth), int)
    for label in (False, True):  # each fold gets its share of both
        members = order[truth[order] == label]
        fold[members] = np.arange(len(members)) % FOLDS
    guess = np.empty(len(truth))
    for k in range(FOLDS):
        rest = fold != k
        bins, wanted = _binned(values[rest], values[~rest])
        base = truth[rest].mean()
        count = np.bincount(bins, minlength=BINS + 1)
        hits = np.bincount(bins, truth[rest], minlength=BINS + 1)
        rate = (hits + base) / (count + 1)  # one picture's worth of the base rate: an empty bin knows nothing
        guess[~rest] = np.where(wanted < len(rate), rate[np.minimum(wanted, len(rate) - 1)], base) - base
    low, high = metrics.auroc_interval(guess, truth, 1 - error)
    return Probe(name, target, metrics.auroc(guess, truth), low, high)


def _binned(known: Values, asked: Values) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Bins of the known and the asked values: fifths of the known numbers, or one bin for each known word."""
    if known.dtype.kind == "f":
        edges = np.quantile(known.astype(np.float64), np.arange(1, BINS) / BINS)
        return np.searchsorted(edges, known), np.searchsorted(edges, asked)
    words = np.unique(known)
    place = np.searchsorted(words, asked).clip(0, len(words) - 1)
    return np.searchsorted(words, known), np.where(words[place] == asked, place, len(words) + BINS + 1)


def properties(evidence: Evidence) -> dict[str, Values]:
    """Properties by name, (N,) each; those that are the same for all pictures are left out."""
    rows = [
        _of_file(path) | _of_picture(images.luma(array), array)
        for path, array in zip(evidence.paths, evidence.inputs, strict=True)
    ]
    for row, (height, width) in zip(rows, evidence.sizes, strict=True):
        row |= {"height": float(height), "width": float(width), "aspect": width / height}
        row["bytes per pixel"] = float(row["file size"]) / (height * width)
    known: dict[str, Values] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        numbers = all(isinstance(value, float) for value in values)
        array: Values = np.array(values, np.float64) if numbers else np.array([str(v) for v in values])
        if len(np.unique(array)) > 1:
            known[name] = array
    return known


def _of_picture(grey: Pixels, array: Pixels) -> dict[str, float | str]:
    """Of the picture as the detector sees it."""
    values = grey.astype(np.float64)
    inner = values[1:-1, 1:-1]
    laplacian = values[:-2, 1:-1] + values[2:, 1:-1] + values[1:-1, :-2] + values[1:-1, 2:] - 4 * inner
    contrast = float(values.std())
    return {
        "brightness": float(values.mean()),
        "contrast": contrast,
        "sharpness": float(np.abs(laplacian).mean()) / max(contrast, 1.0),
        "colour cast": float(array[..., 0].mean() - array[..., 2].mean()),
    }


def _of_file(path: Path) -> dict[str, float | str]:
    """Of the file: size, format, compression, camera, date. It has been decoded before, so its header is sound."""
    found: dict[str, float | str] = {"file size": float(path.stat().st_size)}
    with Image.open(path) as header:
        found["format"] = f"{header.format} {header.mode}"
        tables = getattr(header, "quantization", None)
        if tables:
            found["compression"] = float(np.mean(tables[0]))
        exif = header.getexif()
        details = exif.get_ifd(ExifTags.IFD.Exif)
        found |= {name: str(exif[tag]) for tag, name in CAMERA.items() if tag in exif}
        exposure = details.get(ExifTags.Base.ExposureTime)
        if exposure and math.isfinite(float(exposure)):
            found["exposure time"] = float(exposure)
        taken = next((str(part[tag]) for part in (details, exif) for tag in TAKEN if tag in part), "")
        if len(taken) >= 10:
            found["day"] = taken[:10]
    return found
