"""One server for the tests that only ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fcdd.detector.runtime import Runtime

from ..conftest import Deployed
from .running import running


@pytest.fixture(scope="session")
def plate_folder(deployed: Deployed) -> Path:
    return deployed.plates


@pytest.fixture(scope="session")
def plate_model(deployed: Deployed) -> Path:
    return deployed.onnx


@pytest.fixture(scope="session")
def plate(plate_model: Path) -> Runtime:
    return Runtime(plate_model, threads=1)


@pytest.fixture(scope="session")
def served(plate: Runtime) -> Iterator[str]:
    """The address of a server with the models `plate` and `other`."""
    with running({"plate": plate, "other": plate}) as address:
        yield address


@pytest.fixture(scope="session")
def defect(plate_folder: Path) -> Path:
    return sorted((plate_folder / "test" / "stain").glob("*.png"))[-1]
