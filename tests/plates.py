"""A small set of generated plates on disk, for tests that need a real detector on real files."""

from __future__ import annotations

from pathlib import Path

from fcdd.anomalies.plates import generate
from fcdd.images import save_png


def write_plates(root: Path, train: int = 28, good: int = 6, defects: int = 3) -> Path:
    """MVTec's layout with plates of 128 px and clearly visible defects."""
    plates = generate(train, good, defects, size=128, seed=3, faintest=0.7)
    for index, plate in enumerate(plates.train):
        _write(root / "train" / "good" / f"{index:02}.png", plate.permute(1, 2, 0).numpy())
    for index, (plate, kind, mask) in enumerate(zip(plates.test, plates.kinds, plates.masks, strict=True)):
        _write(root / "test" / kind / f"{index:02}.png", plate.permute(1, 2, 0).numpy())
        if kind != "good":
            _write(root / "ground_truth" / kind / f"{index:02}_mask.png", mask[0].numpy() * 255)
    return root


def _write(path: Path, array: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    save_png(array, path)  # type: ignore[arg-type]
