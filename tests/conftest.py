"""Where the tests find real data, and how many threads they take."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

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
