"""One Chromium, driven by Playwright, and one server for all tests of the page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from fcdd.detector.runtime import Runtime

from ..conftest import Deployed
from ..serve.running import running
from .using import opened

TOKEN = "correct-horse-battery"
CAMERA = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium on this machine; `make test-browser` installs Debian's as root")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=CAMERA)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def models(deployed: Deployed) -> dict[str, Runtime]:
    other = Runtime(deployed.onnx, threads=1)
    other.reject_above(1e6)
    return {"plate": Runtime(deployed.onnx, threads=1), "other": other}


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
    with opened(chromium, address) as page:
        yield page


@pytest.fixture(scope="session")
def images(deployed: Deployed) -> dict[str, Path]:
    """One good plate and one clear defect."""
    test = deployed.plates / "test"
    return {"good": sorted((test / "good").glob("*.png"))[0], "stain": sorted((test / "stain").glob("*.png"))[-1]}
