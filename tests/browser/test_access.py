"""The page for every person and against every other: keyboard, screen reader, phone, token, policy."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from ..serve.test_app import metrics
from .conftest import TOKEN
from .using import judge, opened, text

PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True, "has_touch": True}


def test_the_keyboard_reaches_everything(page: Page, images: dict[str, Path]) -> None:
    judge(page, images["good"], images["stain"])
    expect(page.locator(".keys")).to_be_visible()
    first = text(page, "name")
    page.keyboard.press("ArrowRight")
    assert text(page, "name") != first
    page.keyboard.press("ArrowLeft")
    assert text(page, "name") == first
    page.keyboard.press("h")
    expect(page.locator("#heat")).to_have_css("opacity", "0")
    page.keyboard.press("r")
    expect(page.locator("#boxes")).to_have_css("display", "none")
    reached = set()
    for _ in range(24):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"choose-files", "choose-folder", "open-camera", "opacity", "outline", "threshold", "csv", "open"} <= reached


def test_the_focus_stays_where_the_list_is_drawn_anew(page: Page, images: dict[str, Path]) -> None:
    judge(page, images["good"], images["stain"])
    for row in (0, 1):
        button = page.locator("#rows tr").nth(row).locator("button")
        button.focus()
        name = button.inner_text()
        page.keyboard.press("Enter")
        expect(page.locator("#name")).to_have_text(name)
        assert page.evaluate("document.activeElement.innerText") == name
        assert page.locator("tr[aria-current] button").inner_text() == name


def test_everything_has_a_name_for_screen_readers(page: Page, images: dict[str, Path]) -> None:
    judge(page, images["stain"])
    nodes = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "slider", "checkbox", "combobox", "image", "table", "link", "heading"}
    wanted = [node for node in nodes if not node["ignored"] and node["role"]["value"] in roles]
    assert len(wanted) > 15
    assert not [node for node in wanted if not node.get("name", {}).get("value")]
    named = {node["name"]["value"] for node in wanted}
    assert {"Opacity of the heat", "Reject above this score", "Previous image", "Download CSV"} <= named
    expect(page.locator("#said[role=status]")).to_have_attribute("aria-live", "polite")


def test_on_a_phone_the_verdict_is_seen_first(chromium: Browser, address: str, images: dict[str, Path]) -> None:
    with opened(chromium, address, **PHONE) as page:
        judge(page, images["good"], images["stain"])
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        for button in page.locator("button:visible:not(.quiet)").all():
            place = button.bounding_box()
            assert place
            assert min(place["width"], place["height"]) >= 40
        assert page.locator("#rows .word").first.inner_text() in ("OK", "NG", "REVIEW")
        verdict = page.locator("#verdict .head").bounding_box()
        assert verdict
        assert page.evaluate("scrollY") == 0
        assert verdict["y"] + verdict["height"] < 844
        # Chosen from the list below, an image is shown with its verdict too.
        page.locator("#rows button").last.tap()
        expect(page.locator("#verdict .head")).to_be_in_viewport(ratio=1)
        expect(page.locator(".keys")).to_be_hidden()


def test_the_token_is_asked_for_once_and_kept(chromium: Browser, guarded: str, images: dict[str, Path]) -> None:
    with opened(chromium, guarded, ready=False) as page:
        for given in ("wrong-token-wrong-token", TOKEN):
            expect(page.locator("#token")).to_be_visible()
            expect(page.locator("#token")).to_have_value("")
            page.locator("#token").fill(given)
            page.locator("#door button").click()
        expect(page.locator("body")).to_have_attribute("data-ready", "yes")
        judge(page, images["stain"])
        assert "NG" in text(page, "verdict")


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_nothing_leaves_for_other_hosts_and_the_policy_holds(
    chromium: Browser, address: str, images: dict[str, Path], path: str
) -> None:
    with opened(chromium, "about:blank", ready=False) as page:
        asked: list[str] = []
        errors: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(address + path)
        if path == "/":
            expect(page.locator("body")).to_have_attribute("data-ready", "yes")
            judge(page, images["stain"])
        else:
            expect(page.locator("section").nth(5)).to_be_visible()
        assert len(asked) > 3
        assert not [url for url in asked if not url.startswith((address, "blob:"))]
        assert not errors
        # A script in the page, as an attacker would plant one, does not run.
        page.evaluate(
            "() => { const script = document.createElement('script'); script.append('window.planted = 1');"
            " document.body.append(script); }"
        )
        assert page.evaluate("window.planted") is None


def test_the_page_of_another_server_gets_nothing_judged(chromium: Browser, address: str, guarded: str) -> None:
    refused = 'fcdd_requests_total{method="POST",route="other",status="403"}'
    assert refused not in metrics(address)
    # Any page that is reached over plain http on another port will do, and its policy is not what is tested.
    with opened(chromium, guarded + "/openapi.json", ready=False, bypass_csp=True) as page:
        page.evaluate(
            "address => fetch(address, { method: 'POST', mode: 'no-cors', body: 'x' }).then(() => 1, () => 0)",
            address + "/v1/models/plate/predict",
        )
    assert metrics(address)[refused] == 1


def test_names_cannot_become_markup_or_formulas(page: Page, images: dict[str, Path], tmp_path: Path) -> None:
    odd = tmp_path / "=1+1,<img src=x onerror=alert(1)>.png"
    odd.write_bytes(images["good"].read_bytes())
    judge(page, odd)
    assert text(page, "name") == odd.name
    assert page.locator("#rows img").count() == 1
    with page.expect_download() as download:
        page.locator("#csv").click()
    line = download.value.path().read_text("utf-8-sig").splitlines()[1]
    assert line.startswith("\"'=1+1,<img")
