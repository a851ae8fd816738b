"""`fcdd demo`: an inspection set made in code, a detector trained on it, its figures and its pictures."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from fcdd import commands, images
from fcdd.colours import colour, overlay
from fcdd.data import surface
from fcdd.detector import Detector
from fcdd.inspection import heat
from fcdd.report import contact_sheet

SHOWN_SEVERITY = 6  # of ten, from faint to severe: what the sheet shows of each defect


def run(output: Path, seed: int = 0, quiet: bool = False) -> dict[str, Any]:
    """Write plates, model, report and picture into `output`; the figures as plain values."""
    if output.exists():
        shutil.rmtree(output)
    plates = write_plates(output / "plates", seed)
    model = output / "plate.safetensors"
    trained = commands.train(
        plates / "train" / "good", None, None, model, commands.TrainOptions(seed=seed), quiet=quiet
    )
    page = output / "evaluation.html"
    figures = commands.evaluate(model, plates, page, overwrite=False, skip_bad=False, quiet=quiet)
    picture = output / "heatmaps.png"
    _sheet(Detector.load(model), plates, picture)
    return {**figures, "training": trained, "picture": str(picture), "plates": str(plates)}


def write_plates(root: Path, seed: int) -> Path:
    """The generated set as PNG files in MVTec's layout, so that every other command can be tried on it."""
    plates = surface.generate(n_train=120, size=256, seed=seed, faintest=0.5)
    for index, plate in enumerate(plates.train):
        _write(plate, root / "train" / "good" / f"{index:03}.png")
    place: dict[str, int] = {}
    for plate, kind, mask in zip(plates.test, plates.kinds, plates.masks, strict=True):
        index = place[kind] = place.get(kind, -1) + 1
        _write(plate, root / "test" / kind / f"{index:03}.png")
        if kind != "good":
            _write(mask * 255, root / "ground_truth" / kind / f"{index:03}_mask.png")
    return root


def _write(picture: Tensor, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    images.save_png(picture.permute(1, 2, 0).squeeze(2).numpy(), path)


def _sheet(detector: Detector, plates: Path, path: Path) -> None:
    """One good plate and one of each defect: input, heatmap, overlay, truth."""
    names = [("good", f"{SHOWN_SEVERITY:03}"), *((kind, f"{SHOWN_SEVERITY:03}") for kind in surface.DEFECTS)]
    rows: list[list[np.ndarray]] = [[], [], [], []]
    headings = []
    for kind, name in names:
        array, result = next(detector.inspect([plates / "test" / kind / f"{name}.png"]))
        values = heat(detector, result)
        mask = plates / "ground_truth" / kind / f"{name}_mask.png"
        truth = images.load_mask(mask) if mask.exists() else np.zeros(array.shape[:2], np.bool_)
        for row, picture in zip(rows, (array, colour(values), overlay(array, values), truth), strict=True):
            row.append(picture)
        headings.append(f"{kind}: {result.verdict}, p {result.p_value:.2g}")
    contact_sheet(rows, headings, ["input", "heatmap", "overlay", "truth"], path)
