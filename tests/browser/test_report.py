"""The report of a training or an evaluation and the page of an audit, in a real Chromium, opened from the disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from fcdd import folders
from fcdd.audit.findings import Audit, Finding, Illustration, Question, Severity, ranked
from fcdd.audit.page import page as audit_page
from fcdd.detector.runtime import Runtime
from fcdd.report import inspection, render
from fcdd.report.content import thumbnail

from ..conftest import Deployed
from .using import opened

WIDTHS = (1400, 390)


@pytest.fixture(scope="module")
def report(deployed: Deployed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plates judged by limits so far off that some defects pass and some good parts are rejected."""
    runtime = Runtime(deployed.onnx, threads=1)
    scores = sorted(runtime.score_samples(sorted((deployed.plates / "test" / "good").glob("*.png"))))
    runtime.reject_above(float(scores[-2]))
    _, items, pixel = inspection.evaluate(runtime, folders.read_test(deployed.plates), quiet=True)
    items = [item for item in items if item.label == 0 or item.kind in ("dent", "stain")]
    path = tmp_path_factory.mktemp("report") / "report.html"
    card = inspection.model_card(runtime)
    render(inspection.report("plate", "test plates", items, runtime.calibration, card, pixel), path)
    return path


@pytest.fixture(params=WIDTHS)
def page(request: pytest.FixtureRequest, chromium: Browser, report: Path) -> Iterator[Page]:
    with opened(chromium, report.as_uri(), ready=False, viewport={"width": request.param, "height": 900}) as page:
        yield page


def test_mistakes_stand_first_with_a_confusion_table(page: Page) -> None:
    wrong = page.locator(".confusion .wrong")
    expect(wrong.first).to_be_visible()
    mistakes = sum(int(text) for text in wrong.all_inner_texts())
    cards = page.locator("#gallery .item .line2").all_inner_texts()
    assert mistakes > 0
    for text in cards[:mistakes]:
        assert "defect passed" in text or "good part rejected" in text
    assert not any("passed" in text or "part rejected" in text for text in cards[mistakes:])
    above = page.locator("#gallery").bounding_box()
    table = page.locator(".confusion").bounding_box()
    assert above
    assert table
    assert table["y"] < above["y"]


def test_words_stand_before_statistics_and_nothing_is_cut_off(page: Page) -> None:
    expect(page.locator("details.expert")).not_to_have_attribute("open", "")
    expect(page.locator("body")).to_contain_text("× the reject limit")
    expect(page.locator("body")).to_contain_text("if they looked as on good parts, the image would be OK")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.locator("details.expert summary").click()
    expect(page.locator("details.expert dl.cards div").first).to_be_visible()
    assert all(note.strip() for note in page.locator("details.expert dl.cards p").all_inner_texts())


def test_an_image_opens_with_its_regions_just_where_it_is_not_ok(page: Page) -> None:
    for verdict, some in (("NG", True), ("OK", False)):
        page.locator("select[name=verdict]").select_option(verdict)
        page.locator("#gallery .item").first.click()
        expect(page.locator("#viewer")).to_be_visible()
        assert (page.locator("#viewer svg rect").count() > 0) is some
        page.locator("#viewer [data-close]").click()


def test_a_long_path_keeps_its_end(page: Page) -> None:
    shown = page.locator("#gallery .path").first
    assert shown.evaluate("element => getComputedStyle(element).direction") == "rtl"
    assert (shown.get_attribute("title") or "").endswith(".png")


def test_the_calibration_in_force_is_on_the_model_card(page: Page) -> None:
    card = page.locator(".card")
    expect(card).to_contain_text("set by hand")
    expect(card).to_contain_text("version2")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_of_an_audit(width: int, chromium: Browser, deployed: Deployed, tmp_path: Path) -> None:
    runtime = Runtime(deployed.onnx, threads=1)
    array, result = next(runtime.inspect([next((deployed.plates / "test" / "stain").glob("*.png"))]))
    drawn = inspection.explained(runtime, array, result)
    images = [Illustration("a stain", thumbnail(array)), Illustration("its heat", thumbnail(drawn))]
    heat = Finding(Question.HEAT, Severity.NONE, "Heat is on the part", "It is.", "Nothing.", images, 0.1, {}, [])
    few = Finding(Question.METADATA, Severity.UNKNOWN, "Too few to say", "Five images.", "More.", [], 0.0, {}, [])
    findings = ranked([heat, few])
    path = tmp_path / "audit.html"
    path.write_text(audit_page(Audit("m", "p", {"good": 3}, {}, findings, 1.0)), encoding="utf-8")
    with opened(chromium, path.as_uri(), ready=False, viewport={"width": width, "height": 900}) as page:
        expect(page.locator("body")).to_contain_text("Too few to say")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        for image in page.locator("img").all():
            assert image.evaluate("element => element.complete && element.naturalWidth > 0")
        assert page.locator("img").count() == 2
