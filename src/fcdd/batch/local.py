"""A folder of images, or one image, through a model on this machine: results, tables and overlays as files."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from fcdd import folders, images
from fcdd.detector import load
from fcdd.detector.judge import Judge
from fcdd.detector.looks import Comparison
from fcdd.errors import ImageError
from fcdd.framing import Fit
from fcdd.outputs import whole_folder
from fcdd.report import inspection


def predict(
    model: Path,
    inputs: Path,
    output: Path,
    overwrite: bool,
    skip_bad: bool,
    quiet: bool,
    threads: int = 0,
    pdf: bool = False,
    fit: Fit | None = None,
) -> dict[str, Any]:
    """Verdicts of all images of a folder, or of one image, as files in `output`, and with `pdf` as a sheet to sign."""
    if pdf:
        import fpdf  # noqa: F401  where it is missing, that is told before the work
    with whole_folder(output, inputs=[model, inputs], overwrite=overwrite) as draft:
        detector = load(model, threads, fit)
        begun = time.monotonic()
        (rows, compared), skipped = _written(detector, inputs, draft, skip_bad, quiet, threads)
        seconds = time.monotonic() - begun
        if pdf:
            from fcdd.report import pdf as sheet

            remarks = [compared.sentence] if compared and compared.changes else []
            sheet.write(draft, model, detector, inputs, rows, remarks)
    verdicts = dict(Counter(row["verdict"] for row in rows))
    return {
        "output": str(output),
        "page": str(output / "index.html"),
        "pdf": str(output / "report.pdf") if pdf else None,
        "images": len(rows),
        "reject_above": detector.calibration.limits.reject,
        "verdicts": verdicts,
        "skipped": skipped,
        "images_per_second": len(rows) / seconds,
        "looks": compared.to_dict() if compared else None,
        "worst": sorted(rows, key=lambda row: -row["score"])[:10],
    }


def _written(
    detector: Judge, inputs: Path, draft: Path, skip_bad: bool, quiet: bool, threads: int
) -> tuple[tuple[list[dict[str, Any]], Comparison | None], list[str]]:
    """The rows of all images, whose files are in `draft`, with whether they look as at calibration; and what is wrong
    with those that were left out.

    Every file is decoded once. Only where one turns out to be bad are all looked at first, so that all are named.
    """
    root = inputs if inputs.is_dir() else inputs.parent
    paths = images.find(inputs) if inputs.is_dir() else [inputs]
    with suppress(ImageError):
        if paths:
            return inspection.write_results(detector, paths, root, draft, quiet, threads), []
    paths, skipped = folders.usable(inputs, skip_bad)
    for left in draft.iterdir():
        shutil.rmtree(left)
    return inspection.write_results(detector, paths, root, draft, quiet, threads), skipped
