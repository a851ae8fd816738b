"""A folder of images, or one image, through a model on this machine: results, tables and overlays as files."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

from fcdd import folders
from fcdd.detector import load
from fcdd.outputs import whole_folder
from fcdd.report import inspection


def predict(
    model: Path, inputs: Path, output: Path, overwrite: bool, skip_bad: bool, quiet: bool, threads: int = 0
) -> dict[str, Any]:
    """Verdicts of all images of a folder, or of one image, as files in `output`."""
    with whole_folder(output, inputs=[model, inputs], overwrite=overwrite) as draft:
        detector = load(model, threads)
        paths, skipped = folders.usable(inputs, skip_bad)
        root = inputs if inputs.is_dir() else inputs.parent
        begun = time.monotonic()
        rows = inspection.write_results(detector, paths, root, draft, quiet)
        seconds = time.monotonic() - begun
    verdicts = dict(Counter(row["verdict"] for row in rows))
    return {
        "output": str(output),
        "images": len(rows),
        "verdicts": verdicts,
        "skipped": skipped,
        "images_per_second": len(rows) / seconds,
        "worst": sorted(rows, key=lambda row: -row["score"])[:10],
    }
