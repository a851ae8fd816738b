"""Where the tests find real data, and how many threads they take."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from fcdd import images
from fcdd.detector.detector import Detector
from fcdd.detector.export import export
from fcdd.detector.settings import Settings
from fcdd.nn.architecture import Architecture

from .plates import write_plates

# More would fight with the training subprocesses that some tests start, and win nothing on tensors this small.
torch.set_num_threads(1)

DATA = Path(os.environ.get("FCDD_DATA", Path(__file__).parents[2] / "shared" / "data"))
WEIGHTS = DATA.parent / "weights"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data; tests that need it skip where it is absent."""
    if not DATA.is_dir():
        pytest.skip(f"real data not found at {DATA}; set FCDD_DATA to the folder that holds it")
    return DATA


@pytest.fixture(scope="session")
def shared_weights() -> Path:
    """The folder of pretrained weights that are not on PyPI; tests that need it skip where it is absent."""
    if not WEIGHTS.is_dir():
        pytest.skip(f"pretrained weights not found at {WEIGHTS}")
    return WEIGHTS


class Deployed(NamedTuple):
    """A small real detector and what `export` made of it."""

    plates: Path  # MVTec's layout
    detector: Detector
    onnx: Path


@pytest.fixture(scope="session")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Deployed:
    root = tmp_path_factory.mktemp("deployed")
    plates = write_plates(root / "plates")
    settings = Settings(Architecture(planes=8, directions=4), smallest=128, largest=128, vectors=8000)
    detector = Detector(settings).fit(plates / "train" / "good")
    export(detector, root / "plate.onnx", images.find(plates / "train" / "good"))
    return Deployed(plates, detector, root / "plate.onnx")
