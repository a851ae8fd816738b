"""Many pictures through a detector: figures, pages and files for people. Needs numpy and Pillow alone."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from fcdd import images, metrics
from fcdd.detector.calibration import Calibration
from fcdd.detector.judge import Judge
from fcdd.detector.result import Result
from fcdd.files import utf8, write_atomically
from fcdd.metrics import Ranking
from fcdd.progress import bar
from fcdd.report import Card, Item, ReportData
from fcdd.report.colours import colour, overlay

BOX = (0, 230, 255)
LONGEST_NAME = 255  # bytes of a file's name on the usual file systems
WAITING = 16  # overlays that may wait to be written, so that memory stays small


class Inspector(Protocol):
    """What this module needs of a detector, whatever runs it."""

    pixel_threshold: float  # heat above it becomes a region
    pixel_floor: float  # usual heat of good parts

    @property
    def calibration(self) -> Calibration: ...

    def inspect(self, pictures: Iterable[Any]) -> Iterator[tuple[NDArray[np.uint8], Result]]: ...


@dataclass(frozen=True)
class Evaluation:
    """Figures on labelled pictures; None where there are no masks or only one label."""

    images: int
    image_auroc: float | None
    image_auroc_low: float | None  # 95 % interval
    image_auroc_high: float | None
    best_f1: float | None
    pixel_auroc: float | None  # pooled over all pixels
    aupro: float | None  # up to a false-positive rate of 0.3
    verdicts: dict[str, dict[str, int]]  # kind → verdict → count
    images_per_second: float


class Labelled(Protocol):
    """Pictures with what is known of them (`fcdd.data.folder.Labelled`); all sequences are equally long."""

    @property
    def paths(self) -> Sequence[Path]: ...
    @property
    def labels(self) -> Sequence[int]: ...
    @property
    def kinds(self) -> Sequence[str]: ...
    @property
    def mask_paths(self) -> Sequence[Path | None]: ...


def evaluate(
    detector: Inspector, pictures: Labelled, quiet: bool = False
) -> tuple[Evaluation, list[Item], Ranking | None]:
    """Figures, report items and the pixel ranking of labelled pictures."""
    pooled, aupro = metrics.PixelHistogram(), metrics.Aupro()
    items: list[Item] = []
    # Pixel figures need the truth of every defect: one without mask would count as all good.
    masked = any(pictures.mask_paths) and all(m for m, y in zip(pictures.mask_paths, pictures.labels, strict=True) if y)
    begun, verdicts = time.monotonic(), Counter[tuple[str, str]]()
    with bar("inspecting", len(pictures.paths), quiet=quiet) as shown:
        for index, (array, result) in enumerate(detector.inspect(pictures.paths)):
            mask_path = pictures.mask_paths[index]
            mask = images.load_mask(mask_path) if mask_path else np.zeros(array.shape[:2], np.bool_)
            if masked:
                pooled.update(result.heatmap, mask)
                aupro.update(result.heatmap, mask)
            kind, label = pictures.kinds[index], pictures.labels[index]
            verdicts[kind, str(result.verdict)] += 1
            truth = mask if mask_path else None
            items.append(item(detector, str(pictures.paths[index]), array, result, kind, label, truth))
            shown.advance(1)
    seconds = time.monotonic() - begun
    scores = [i.score for i in items]
    both = len(set(pictures.labels)) == 2
    low, high = metrics.auroc_interval(scores, pictures.labels) if both else (None, None)
    counts: dict[str, dict[str, int]] = {}
    for (kind, verdict), count in verdicts.items():
        counts.setdefault(kind, {})[verdict] = count
    evaluation = Evaluation(
        images=len(items),
        image_auroc=metrics.auroc(scores, pictures.labels) if both else None,
        image_auroc_low=low,
        image_auroc_high=high,
        best_f1=metrics.best_f1(scores, pictures.labels)[0] if both else None,
        pixel_auroc=pooled.auroc() if masked else None,
        aupro=aupro.aupro() if masked else None,
        verdicts=counts,
        images_per_second=len(items) / seconds,
    )
    return evaluation, items, pooled.ranking() if masked else None


def heat(detector: Inspector, result: Result) -> NDArray[np.float32]:
    """The heatmap on the scale of the colours, (H, W) in [0, 1]: what good parts usually have is dark, the pixel
    threshold is in the middle, on every picture of a detector alike."""
    span = max(2 * (detector.pixel_threshold - detector.pixel_floor), 1e-12)
    return np.asarray(np.clip((result.heatmap - detector.pixel_floor) / span, 0, 1), np.float32)


def item(
    detector: Inspector,
    name: str,
    array: NDArray[np.uint8],
    result: Result,
    kind: str = "",
    label: int | None = None,
    truth: NDArray[np.bool_] | None = None,
) -> Item:
    """One picture for the report."""
    values = heat(detector, result)
    return Item.of(
        name,
        result.score,
        array,
        kind=kind,
        label=label,
        p_value=result.p_value,
        verdict=result.verdict,
        heatmap=colour(values),
        overlay=overlay(array, values),
        truth=truth,
        regions=result.regions,
    )


def report(
    title: str,
    subtitle: str,
    items: Sequence[Item],
    calibration: Calibration,
    card: Mapping[str, Mapping[str, str]],
    pixel: Ranking | None = None,
    cards: Sequence[Card] = (),
) -> ReportData:
    """The page of a training or an evaluation."""
    limits = calibration.limits
    return ReportData(
        title=title,
        subtitle=subtitle,
        items=items,
        thresholds={"review": limits.review, "reject": limits.reject},
        cards=cards,
        pixel=pixel,
        guarantee=calibration.promise,
        model_card=card,
    )


def write_results(
    detector: Inspector, paths: Sequence[Path], root: Path, folder: Path, quiet: bool = False
) -> list[dict[str, Any]]:
    """Write scores.csv, results.jsonl and an overlay of each picture into `folder`; the rows as a list.

    Overlays keep the images' place below `root` and their size; boxes mark the regions.
    """
    rows: list[dict[str, Any]] = []
    names = overlay_names([path.relative_to(root) for path in paths])

    def save(array: NDArray[np.uint8], result: Result, path: Path) -> None:
        images.save_png(marked(detector, array, result), path, compress_level=1)

    with bar("inspecting", len(paths), quiet=quiet) as shown, ThreadPoolExecutor(1) as writer:
        saved: deque[Future[None]] = deque()
        for (name, place), (array, result) in zip(names.items(), detector.inspect(paths), strict=True):
            saved.append(writer.submit(save, array, result, folder / place))
            if len(saved) > WAITING:
                saved.popleft().result()
            rows.append({"file": str(name), **result.to_dict(), "overlay": str(place)})
            shown.advance(1)
        for one in saved:
            one.result()
    write_atomically(folder / "results.jsonl", (utf8(json.dumps(row) + "\n") for row in rows))
    write_atomically(folder / "scores.csv", utf8(_table(rows)))
    return rows


def overlay_names(names: Sequence[Path]) -> dict[Path, Path]:
    """Where each image's overlay goes: overlays/ and the image's name with .png behind it.

    A hash of the name stands in where that is too long for a file's name, or is the name of a folder of images.
    """
    taken = {parent for name in names for parent in name.parents}
    places = {}
    for name in names:
        place = name.with_name(f"{name.name}.png")
        if place in taken or len(os.fsencode(place.name)) > LONGEST_NAME:
            place = name.with_name(f"{hashlib.sha256(os.fsencode(name)).hexdigest()}.png")
        places[name] = Path("overlays") / place
    return places


def marked(detector: Inspector, array: NDArray[np.uint8], result: Result) -> NDArray[np.uint8]:
    """The picture under its heat, with a box around each region."""
    picture = Image.fromarray(overlay(array, heat(detector, result)))
    draw = ImageDraw.Draw(picture)
    for r in result.regions:
        draw.rectangle(
            (r.x, r.y, r.x + r.width - 1, r.y + r.height - 1), outline=BOX, width=max(1, array.shape[0] // 300)
        )
    return np.asarray(picture)


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["file", "score", "p_value", "verdict", "regions"])
    writer.writerows([_cell(r["file"]), r["score"], r["p_value"], r["verdict"], len(r["regions"])] for r in rows)
    return text.getvalue()


def _cell(name: str) -> str:
    """A name that starts like a formula must not become one in a spreadsheet, so an apostrophe goes before it."""
    return f"'{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r")) else name


def model_card(detector: Judge) -> dict[str, dict[str, str]]:
    """Data, recipe and versions, for the report."""
    card, settings, architecture = detector.card, detector.settings, detector.settings.architecture
    return {
        "Data": {
            "good images": str(card["good"]),
            "held out for calibration": str(card["calibration"]),
            "labelled defects": str(card["defects"]),
            "fingerprint of the good images": card["fingerprint"][:16],
        },
        "Recipe": {
            "trunk": f"{architecture.trunk}, frozen",
            "planes": f"{architecture.planes} with {architecture.directions} directions",
            "input": f"{detector.grid.shape[1]} × {detector.grid.shape[0]} px, one cell per {detector.grid.stride} px",
            "score": f"mean of the strongest {settings.top:.0%} of the cells shown",
            "seed": str(detector.seed),
        },
        "Versions": card["versions"],
    }
