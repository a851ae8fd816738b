"""What a cue does before and after mending, as one image with a column for each file.

    python benchmarks/audit_pictures.py BEFORE AFTER OUT FILE…

For the horses, in runs/audit/horses: before.safetensors after.safetensors horses.png parts/train/defects/*-planted.png
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

from fcdd.detector.detector import Detector
from fcdd.report import contact_sheet
from fcdd.report.colours import overlay

MOST = 6  # columns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    options = parser.parse_args()
    files = options.files[:MOST]
    rows: list[list[np.ndarray]] = [[], [], []]
    for number, path in enumerate((options.before, options.after)):
        detector = Detector.load(path)
        seen = list(detector.inspect(files))
        floor = detector.calibration.usual
        peaks = [float(result.heatmap.max()) for _, result in seen]
        span = min(
            2 * (detector.calibration.limits.review - floor), float(np.median(peaks)) - floor
        )  # as on the audit's page
        for array, result in seen:
            if number == 0:
                rows[0].append(array)
            rows[number + 1].append(overlay(array, np.clip((result.heatmap - floor) / span, 0, 1)))
    headings = [f"{path.parent.name}/{path.stem}" for path in files]
    contact_sheet(rows, headings, ["image", "heat before", "heat after mending"], options.output, cell=150)
    Image.open(options.output).quantize(256, Image.Quantize.MAXCOVERAGE).save(options.output, optimize=True)


if __name__ == "__main__":
    main()
