"""Many images through a detector: figures, pages and files for people. Needs numpy and Pillow alone."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fcdd import images, metrics
from fcdd.detector.calibration import Calibration
from fcdd.detector.judge import Judge
from fcdd.detector.looks import FEWEST, Comparison
from fcdd.detector.result import Grid, Result
from fcdd.files import utf8, write_atomically
from fcdd.metrics import Ranking
from fcdd.nn.architecture import AnyArchitecture, Architecture, FcnArchitecture
from fcdd.progress import bar
from fcdd.report import Card, Item, ReportData
from fcdd.report.colours import colour
from fcdd.report.content import THUMBNAIL, mistake
from fcdd.report.drawing import captioned, outlined, words
from fcdd.report.page import render_results

LONGEST_NAME = 255  # bytes of a file's name on the usual file systems
LARGE = 3 * THUMBNAIL  # longest side of the images of mistakes
Each = Callable[[NDArray[np.uint8], Result], None]  # pixels (H, W, 3) and what was found
WAITING = 16  # overlays that may wait to be written, so that memory stays small


class Inspector(Protocol):
    """What this module needs of a detector, whatever runs it."""

    @property
    def calibration(self) -> Calibration: ...
    @property
    def grid(self) -> Grid: ...
    @property
    def inside(self) -> NDArray[np.bool_]: ...

    def inspect(self, given: Iterable[Any], /) -> Iterator[tuple[NDArray[np.uint8], Result]]: ...

    def looked(self, seen: Sequence[NDArray[np.float64]], /) -> Comparison | None: ...


@dataclass(frozen=True)
class Evaluation:
    """Figures on labelled images; None where there are no masks or only one label."""

    images: int
    image_auroc: float | None
    image_auroc_low: float | None  # 95 % interval
    image_auroc_high: float | None
    best_f1: float | None
    pixel_auroc: float | None  # pooled over all pixels
    aupro: float | None  # up to a false-positive rate of 0.3
    verdicts: dict[str, dict[str, int]]  # kind → verdict → count
    images_per_second: float
    looks: Comparison | None = None  # whether the good images look as at calibration; None where nobody can tell


class Labelled(Protocol):
    """Images with what is known of them (`fcdd.folders.Labelled`); all sequences are equally long."""

    @property
    def paths(self) -> Sequence[Path]: ...
    @property
    def labels(self) -> Sequence[int | None]: ...
    @property
    def kinds(self) -> Sequence[str]: ...
    @property
    def mask_paths(self) -> Sequence[Path | None]: ...


def evaluate(
    detector: Inspector, labelled: Labelled, quiet: bool = False, each: Each | None = None
) -> tuple[Evaluation, list[Item], Ranking | None]:
    """Figures, report items and the pixel ranking of labelled images; `each` is called with every image in turn."""
    pooled, aupro = metrics.PixelHistogram(), metrics.Aupro()
    items: list[Item] = []
    looks: list[tuple[int | None, NDArray[np.float64]]] = []
    # Pixel figures need the truth of every defect: one without mask would count as all good.
    masked = any(labelled.mask_paths) and all(m for m, y in zip(labelled.mask_paths, labelled.labels, strict=True) if y)
    begun, verdicts = time.monotonic(), Counter[tuple[str, str]]()
    with bar("inspecting", len(labelled.paths), quiet=quiet) as shown:
        for index, (array, result) in enumerate(detector.inspect(labelled.paths)):
            mask_path = labelled.mask_paths[index]
            mask = images.load_mask(mask_path) if mask_path else np.zeros(array.shape[:2], np.bool_)
            if masked:
                pooled.update(result.heatmap, mask)
                aupro.update(result.heatmap, mask)
            kind, label = labelled.kinds[index], labelled.labels[index]
            verdicts[kind, str(result.verdict)] += 1
            if each is not None:
                each(array, result)
            if result.looks is not None:
                looks.append((label, result.looks))
            truth = mask if mask_path else None
            items.append(item(detector, str(labelled.paths[index]), array, result, kind, label, truth))
            shown.advance(1)
    seconds = time.monotonic() - begun
    scores = [i.score for i in items]
    both = set(labelled.labels) == {0, 1}
    labels = [label or 0 for label in labelled.labels]
    low, high = metrics.auroc_interval(scores, labels) if both else (None, None)
    counts: dict[str, dict[str, int]] = {}
    for (kind, verdict), count in verdicts.items():
        counts.setdefault(kind, {})[verdict] = count
    evaluation = Evaluation(
        images=len(items),
        image_auroc=metrics.auroc(scores, labels) if both else None,
        image_auroc_low=low,
        image_auroc_high=high,
        best_f1=metrics.best_f1(scores, labels)[0] if both else None,
        pixel_auroc=pooled.auroc() if masked else None,
        aupro=aupro.aupro() if masked else None,
        verdicts=counts,
        images_per_second=len(items) / seconds,
        looks=detector.looked(_presumably_good(looks)),
    )
    return evaluation, items, pooled.ranking() if masked else None


def _presumably_good(looks: Sequence[tuple[int | None, NDArray[np.float64]]]) -> list[NDArray[np.float64]]:
    """The looks of the good images, or of all where the good ones are too few to say anything."""
    good = [one for label, one in looks if label == 0]
    return good if len(good) >= FEWEST else [one for _, one in looks]


def heat(detector: Inspector, result: Result) -> NDArray[np.float32]:
    """The heatmap on the scale of the colours, (H, W) in [0, 1]: what cells of good parts usually have is 0, and the
    heat of the outline is in the middle, which all that is outlined exceeds and nothing else."""
    usual = detector.calibration.usual
    values = np.clip((result.heatmap - usual) / max(2 * (result.level - usual), 1e-12), 0, 1)
    return np.asarray(np.where(result.marked, np.maximum(values, 0.51), np.minimum(values, 0.5)), np.float32)


def roi_of(detector: Inspector, size: tuple[int, int]) -> NDArray[np.bool_] | None:
    """The pixels (H, W) of an image of `size` that the detector looks at; None where it looks at all."""
    return None if detector.inside.all() else detector.grid.spread(detector.inside, size)


def item(
    detector: Inspector,
    name: str,
    array: NDArray[np.uint8],
    result: Result,
    kind: str = "",
    label: int | None = None,
    truth: NDArray[np.bool_] | None = None,
) -> Item:
    """One image for the report."""
    values = heat(detector, result)
    # Mistakes are few and looked at closely.
    side = LARGE if mistake(label, result.verdict) else THUMBNAIL
    line = max(2, round(1.5 * max(array.shape[:2]) / side))  # so that the thumbnail still shows it
    return Item.of(
        name,
        result.score,
        array,
        kind=kind,
        label=label,
        p_value=result.p_value,
        verdict=result.verdict,
        heatmap=colour(values),
        overlay=outlined(array, values, result.marked, roi_of(detector, result.marked.shape), line),
        truth=truth,
        regions=result.regions,
        side=side,
    )


def report(
    title: str,
    subtitle: str,
    items: Sequence[Item],
    calibration: Calibration,
    card: Mapping[str, Mapping[str, str]],
    pixel: Ranking | None = None,
    cards: Sequence[Card] = (),
    warnings: Sequence[str] = (),
) -> ReportData:
    """The page of a training or an evaluation."""
    promised = calibration.reject_above is None
    return ReportData(
        title=title,
        subtitle=subtitle,
        items=items,
        limits=calibration.limits,
        cards=cards,
        pixel=pixel,
        guarantee=calibration.promise,
        false_rejects=calibration.guarantee(calibration.reject).expected if promised else None,
        model_card=card,
        warnings=[warning for warning in warnings if warning],
    )


def write_results(
    detector: Inspector, paths: Sequence[Path], root: Path, folder: Path, quiet: bool = False, threads: int = 0
) -> tuple[list[dict[str, Any]], Comparison | None]:
    """Write scores.csv, results.jsonl, an overlay of each image and index.html into `folder`; the rows as a list, and
    whether the images look as at calibration.

    Overlays keep the images' place below `root`, their name and their size, with a strip below that says what is seen.
    They are drawn in `threads` threads, 0 for one a core.
    """
    rows: list[dict[str, Any]] = []
    looks: list[NDArray[np.float64]] = []
    names = [path.relative_to(root) for path in paths]

    def save(array: NDArray[np.uint8], result: Result, drawn: Path) -> None:
        images.save_png(explained(detector, array, result), drawn, fast=True)

    with bar("inspecting", len(paths), quiet=quiet) as shown, ThreadPoolExecutor(threads or os.cpu_count()) as writer:
        saved: deque[Future[None]] = deque()
        found = zip(names, overlay_names(names), detector.inspect(paths), strict=True)
        for name, drawn, (array, result) in found:
            saved.append(writer.submit(save, array, result, folder / drawn))
            if len(saved) > WAITING:
                saved.popleft().result()
            rows.append({"file": str(name), **result.to_dict(), "overlay": str(drawn)})
            if result.looks is not None:
                looks.append(result.looks)
            shown.advance(1)
        for one in saved:
            one.result()
    write_atomically(folder / "results.jsonl", (utf8(json.dumps(row) + "\n") for row in rows))
    write_atomically(folder / "scores.csv", utf8(_table(rows)))
    subtitle = f"{len(rows):,} images of {root}"
    compared = detector.looked(looks)
    warnings = [compared.sentence] if compared and compared.changes else []
    title = f"Results of {root.resolve().name}"
    render_results(title, subtitle, rows, detector.calibration, folder / "index.html", warnings)
    return rows, compared


def overlay_names(names: Sequence[Path]) -> list[Path]:
    """Where the overlay of each image lies in the folder of results: overlays/sub/crack_001.png for sub/crack_001.jpg.

    Images of one folder whose names differ in the suffix only keep it: crack_001.jpg.png and crack_001.bmp.png. A hash
    of the name stands in where that is too long for a file's name, or is the name of a folder of images.
    """
    # In lower case, because some file systems do not tell A from a.
    stems = Counter(str(name.with_suffix("")).lower() for name in names)
    alone = [stems[str(name.with_suffix("")).lower()] == 1 for name in names]
    drawn = [name.with_name(f"{name.stem if one else name.name}.png") for name, one in zip(names, alone, strict=True)]
    if len({str(name).lower() for name in drawn}) < len(drawn):  # an image itself is called crack_001.jpg.png
        drawn = [name.with_name(f"{name.name}.png") for name in names]
    folders = {parent for name in names for parent in name.parents}
    return [Path("overlays") / _free(place, name, folders) for place, name in zip(drawn, names, strict=True)]


def _free(place: Path, name: Path, taken: Collection[Path]) -> Path:
    """`place`, or a hash of `name` beside it where its name is too long or one of the folders `taken`."""
    if place in taken or len(os.fsencode(place.name)) > LONGEST_NAME:
        return name.with_name(f"{hashlib.sha256(os.fsencode(name)).hexdigest()}.png")
    return place


def explained(detector: Inspector, array: NDArray[np.uint8], result: Result) -> NDArray[np.uint8]:
    """The image with its heat and its regions outlined, and below it the verdict and a key, (H + strip, W, 3)."""
    shown = outlined(array, heat(detector, result), result.marked, roi_of(detector, result.marked.shape))
    return captioned(shown, result.verdict, words(result.score, detector.calibration.limits.reject))


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["file", "score", "p_value", "verdict", "regions"])
    writer.writerows(
        [spreadsheet_cell(r["file"]), r["score"], r["p_value"], r["verdict"], len(r["regions"])] for r in rows
    )
    return text.getvalue()


def spreadsheet_cell(name: str) -> str:
    """A name that starts like a formula must not become one in a spreadsheet, so an apostrophe goes before it."""
    return f"'{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r")) else name


def model_card(detector: Judge) -> dict[str, dict[str, str]]:
    """Data, recipe and versions, for the report."""
    card, grid = detector.card, detector.grid
    return {
        "Data": {
            "good images": str(card["good"]),
            "labelled defects": str(card["defects"]),
            "fingerprint of the good images": card["fingerprint"][:16],
        },
        "Recipe": {
            "method": detector.settings.method,
            **_network_card(detector.architecture),
            "input": f"{grid.shape[1]} × {grid.shape[0]} px, one cell per {grid.stride} px",
            "score": "mean of all cells"
            if detector.top == 1
            else f"mean of the strongest {detector.top:.0%} of the cells",
            "looks at": "the whole image" if detector.inside.all() else f"{detector.inside.mean():.0%} of the image",
            "seed": str(detector.seed),
        },
        "Calibration": _calibration_card(detector),
        "Versions": card["versions"],
    }


def _calibration_card(detector: Judge) -> dict[str, str]:
    calibration = detector.calibration
    set_ = f"set {calibration.way}" if calibration.way else "set from defects or by hand"
    return {
        "version": str(detector.versions.active.number),
        "good images": str(len(calibration.scores)),
        "review above": f"{calibration.limits.review:.4g}",
        "reject above": f"{calibration.limits.reject:.4g}",
        "threshold": f"level {calibration.reject:.2g}" if calibration.reject_above is None else set_,
    }


def _network_card(architecture: AnyArchitecture | None) -> dict[str, str]:
    if isinstance(architecture, Architecture):
        planes = f"{architecture.planes} with {architecture.directions} directions" if architecture.planes else "none"
        head = f"hypersphere of {architecture.dimensions} dimensions" if architecture.dimensions else "none"
        return {"trunk": f"{architecture.trunk}, frozen", "planes": planes, "trained head": head}
    if isinstance(architecture, FcnArchitecture):
        return {"network": f"{architecture.network} of the paper, {architecture.preprocess} preprocessing"}
    return {"network": "a sum of several"}
