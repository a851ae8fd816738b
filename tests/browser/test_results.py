"""The pages of `fcdd predict` and `fcdd compare`, opened from the disk, on a desk and on a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from fcdd.detector.runtime import Runtime

from ..conftest import Deployed
from ..invoke import fcdd
from .test_access import PHONE
from .using import opened

DEVICES: dict[str, dict[str, Any]] = {"desk": {"viewport": {"width": 1400, "height": 900}}, "phone": PHONE}


@pytest.fixture(scope="module")
def made(deployed: Deployed, models: dict[str, Runtime], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages of both commands; the second model of the comparison rejects nothing."""
    root = tmp_path_factory.mktemp("pages")
    models["other"].save(root / "other.onnx")
    assert fcdd("predict", deployed.onnx, deployed.plates / "test", "-o", root / "results")[0] == 0
    code = fcdd("compare", deployed.onnx, root / "other.onnx", deployed.plates, "-o", root / "comparison")[0]
    assert code == 0
    return root


@pytest.fixture(params=list(DEVICES))
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def errors() -> list[str]:
    return []


def shown(chromium: Browser, path: Path, device: str, errors: list[str]) -> Iterator[Page]:
    with opened(chromium, "about:blank", ready=False, **DEVICES[device]) as page:
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(path.as_uri())
        yield page
        assert page.evaluate("document.documentElement.scrollWidth") == DEVICES[device]["viewport"]["width"]
        assert not errors


@pytest.fixture
def results(chromium: Browser, made: Path, device: str, errors: list[str]) -> Iterator[Page]:
    yield from shown(chromium, made / "results" / "index.html", device, errors)


@pytest.fixture
def comparison(chromium: Browser, made: Path, device: str, errors: list[str]) -> Iterator[Page]:
    yield from shown(chromium, made / "comparison" / "index.html", device, errors)


def test_the_results_are_counted_filtered_and_seen_sharp(results: Page) -> None:
    counts = [int(text) for text in results.locator(".counts b").all_inner_texts()]
    assert sum(counts) == 21
    expect(results.locator("#shown")).to_have_text("21 of 21 images")
    results.locator("[name=verdict]").select_option("NG")
    expect(results.locator("#shown")).to_have_text(f"{counts[2]} of 21 images")
    expect(results.locator(".item")).to_have_count(counts[2])
    # The text in the document: what is drawn of it waits until the item is scrolled into view.
    expect(results.locator(".item .path").first).to_have_text(re.compile(r"\.png$"))
    results.locator(".item").first.click()
    image = results.locator("#viewer img")
    expect(image).to_have_js_property("naturalWidth", 128)  # the image itself, not a thumbnail of it
    expect(results.locator("#viewer header p")).to_contain_text("× the reject limit")
    expect(results.locator("#viewer table")).to_contain_text("Region")
    before = results.locator("#viewer h3").inner_text()
    results.locator("[data-step='1']").click()
    expect(results.locator("#viewer h3")).not_to_have_text(before)
    results.locator("[data-close]").click()
    expect(results.locator("#viewer")).to_be_hidden()


def test_the_tables_beside_the_results_can_be_opened(results: Page, made: Path) -> None:
    for name in ("scores.csv", "results.jsonl"):
        assert results.locator(f"a[href='{name}']").is_visible()
        assert (made / "results" / name).exists()


def test_the_comparison_shows_what_differs_side_by_side(comparison: Page, made: Path) -> None:
    expect(comparison.locator(".told")).to_contain_text("another verdict than plate")
    rows = comparison.locator(".panel.table tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("other")
    changed = comparison.locator(".pair").count()
    assert changed > 0
    expect(comparison.locator("#shown")).to_have_text(f"{changed} of 21 images")
    first = comparison.locator(".pair").first
    expect(first.locator("img")).to_have_count(2)
    verdicts = first.locator(".whose b").all_inner_texts()
    assert verdicts[0] == "NG"
    assert verdicts[1] != "NG"
    comparison.locator("[name=which]").select_option("")
    expect(comparison.locator("#shown")).to_have_text("21 of 21 images")
    comparison.locator("[name=kind]").select_option("=good")
    expect(comparison.locator("#shown")).to_have_text("6 of 21 images")


def test_the_comparison_shows_one_image_large(comparison: Page) -> None:
    comparison.locator(".pair").first.click()
    images = comparison.locator("#viewer img")
    expect(images).to_have_count(3)
    for number in range(3):
        expect(images.nth(number)).to_have_js_property("naturalWidth", 128)
    expect(comparison.locator("#viewer")).to_contain_text("the verdicts differ")
    before = comparison.locator("#viewer h3").inner_text()
    comparison.keyboard.press("ArrowRight")
    expect(comparison.locator("#viewer h3")).not_to_have_text(before)
    comparison.locator("[data-close]").click()
    expect(comparison.locator("#viewer")).to_be_hidden()
