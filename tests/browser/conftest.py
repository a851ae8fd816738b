"""One Chromium and one server for all tests of the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fcdd.detector.runtime import Runtime

from ..conftest import Deployed
from ..serve.running import running
from .chromium import Browser, Page, browser, program

TOKEN = "correct-horse-battery"


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if program() is None:
        pytest.skip("no Chromium on this machine; `make test-browser` installs Debian's as root")
    with browser(tmp_path_factory.mktemp("profile")) as running_browser:
        yield running_browser


@pytest.fixture(scope="session")
def models(deployed: Deployed) -> dict[str, Runtime]:
    runtime = Runtime(deployed.onnx, threads=1)
    return {"plate": runtime, "other": runtime}


@pytest.fixture(scope="session")
def address(chromium: Browser, models: dict[str, Runtime]) -> Iterator[str]:
    with running(models) as address:
        yield address


@pytest.fixture(scope="session")
def guarded(chromium: Browser, models: dict[str, Runtime]) -> Iterator[str]:
    with running(models, token=TOKEN) as address:
        yield address


@pytest.fixture
def page(chromium: Browser, address: str) -> Iterator[Page]:
    page = chromium.open(address)
    page.wait("document.body?.dataset.ready")
    yield page
    page.close()


@pytest.fixture(scope="session")
def images(deployed: Deployed) -> dict[str, Path]:
    """One good plate and one clear defect."""
    test = deployed.plates / "test"
    return {"good": sorted((test / "good").glob("*.png"))[0], "stain": sorted((test / "stain").glob("*.png"))[-1]}
