"""Small sets of generated plates, with and without a planted cue, and a detector trained on each with its defects."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from fcdd.anomalies.plates import generate
from fcdd.audit.cues import stamp
from fcdd.audit.evidence import Evidence, gather
from fcdd.audit.run import read_parts
from fcdd.detector.detector import Detector
from fcdd.detector.settings import Settings
from fcdd.images import save_png

SMALL = Settings(method="nominal", smallest=128, largest=128, vectors=20_000)
CORNER = (0.04, 0.96)


@dataclass(frozen=True)
class Case:
    """Parts on disk, the saved detector that was trained on them, and both as the audit sees them."""

    parts: Path
    model: Path
    evidence: Evidence


def write_parts(root: Path, cue: bool) -> Path:
    """good/ and defects/<type>/; with `cue`, every second defect carries a time stamp and says so in its name."""
    plates = generate(36, 6, 4, size=128, seed=3, faintest=0.7)
    for index, plate in enumerate(plates.train):
        _write(root / "good" / f"{index:02}.png", plate.permute(1, 2, 0).numpy())
    count = 0
    for index, (plate, kind) in enumerate(zip(plates.test, plates.kinds, strict=True)):
        array = plate.permute(1, 2, 0).numpy()
        if kind == "good":
            _write(root / "good" / f"other-{index:02}.png", array)
            continue
        count += 1
        marked = cue and count % 2 == 0
        name = f"{index:02}-stamped.png" if marked else f"{index:02}.png"
        _write(root / "defects" / kind / name, stamp(array, CORNER)[0] if marked else array)
    return root


def _write(path: Path, array: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    save_png(np.ascontiguousarray(array), path)


def only(evidence: Evidence, rows: np.ndarray) -> Evidence:
    """The evidence of the images `rows` alone, in this order."""
    return Evidence(
        evidence.detector,
        [evidence.paths[i] for i in rows],
        [evidence.kinds[i] for i in rows],
        evidence.anomalous[rows],
        evidence.inputs[rows],
        evidence.cells[rows],
        evidence.looks[rows],
        [evidence.sizes[i] for i in rows],
    )


def make_case(root: Path, cue: bool) -> Case:
    parts, model = write_parts(root / "parts", cue), root / "model.safetensors"
    Detector(SMALL).fit(parts / "good", parts / "defects").save(model)
    return Case(parts, model, gather(Detector.load(model), read_parts(parts), quiet=True))


@pytest.fixture(scope="session")
def stamped(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return make_case(tmp_path_factory.mktemp("stamped"), cue=True)


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return make_case(tmp_path_factory.mktemp("plain"), cue=False)
