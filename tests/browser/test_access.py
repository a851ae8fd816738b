"""The page for every person and against every other: keyboard, screen reader, phone, token, policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .chromium import Browser, Page
from .conftest import TOKEN
from .using import judge


def test_the_keyboard_reaches_everything(page: Page, images: dict[str, Path]) -> None:
    judge(page, images["good"], images["stain"])
    first = page.text("name")
    page.press("ArrowRight", 39)
    assert page.text("name") != first
    page.press("ArrowLeft", 37)
    assert page.text("name") == first
    page.press("h")
    assert page.run("getComputedStyle(find('heat')).opacity") == "0"
    page.press("r")
    assert page.run("getComputedStyle(find('boxes')).display") == "none"
    reached = set()
    for _ in range(24):
        page.press("Tab", 9)
        reached.add(page.run("document.activeElement.id || document.activeElement.className"))
    assert {"choose-files", "choose-folder", "open-camera", "opacity", "outline", "threshold", "csv", "open"} <= reached


def test_the_focus_stays_where_the_list_is_drawn_anew(page: Page, images: dict[str, Path]) -> None:
    judge(page, images["good"], images["stain"])
    for row in (1, 2):
        page.run(f"document.querySelector('#rows tr:nth-child({row}) button').focus()")
        name = page.run("document.activeElement.innerText")
        page.press("Enter", 13)
        page.wait(f"find('name').innerText === '{name}'")
        assert page.run("document.activeElement.innerText") == name
        assert page.run("document.querySelector('tr[aria-current] button').innerText") == name


def test_everything_has_a_name_for_screen_readers(page: Page, images: dict[str, Path]) -> None:
    judge(page, images["stain"])
    nodes: list[dict[str, Any]] = page.call("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "slider", "checkbox", "combobox", "image", "table", "link", "heading"}
    wanted = [node for node in nodes if not node["ignored"] and node["role"]["value"] in roles]
    assert len(wanted) > 15
    assert not [node for node in wanted if not node.get("name", {}).get("value")]
    named = {node["name"]["value"] for node in wanted}
    assert {"Opacity of the heat", "Reject above this score", "Previous image", "Download CSV"} <= named
    assert page.run("document.querySelector('[role=status]').ariaLive") == "polite"


def test_on_a_phone_nothing_is_wider_than_the_screen(
    chromium: Browser, address: str, images: dict[str, Path]
) -> None:
    page = chromium.open(address, 390, 844, mobile=True)
    page.wait("document.body?.dataset.ready")
    judge(page, images["good"], images["stain"])
    assert page.run("document.documentElement.scrollWidth") == 390
    small = page.run(
        "[...document.querySelectorAll('button')].filter(b => b.offsetParent && !b.classList.contains('quiet'))"
        ".map(b => b.getBoundingClientRect()).filter(r => r.height < 40 || r.width < 40).length"
    )
    assert small == 0
    assert page.run("document.querySelector('#rows .word').innerText") in ("OK", "NG", "REVIEW")
    page.close()


def test_the_token_is_asked_for_once_and_kept(chromium: Browser, guarded: str, images: dict[str, Path]) -> None:
    page = chromium.open(guarded)
    for given in ("wrong-token-wrong-token", TOKEN):
        page.wait("find('door')?.open")
        page.run(f"find('token').value = '{given}'; document.querySelector('#door button').click()")
    page.wait("document.body?.dataset.ready")
    judge(page, images["stain"])
    assert "NG" in page.text("verdict")
    page.close()


def test_nothing_leaves_for_other_hosts_and_the_policy_holds(
    chromium: Browser, address: str, images: dict[str, Path]
) -> None:
    for path in ("/", "/docs"):
        page = chromium.open(address + path)
        if path == "/":
            page.wait("document.body?.dataset.ready")
            judge(page, images["stain"])
        else:
            page.wait("document.querySelectorAll('section').length > 5")
        asked = [event["request"]["url"] for event in page.events("Network.requestWillBeSent")]
        assert len(asked) > 3
        assert not [url for url in asked if not url.startswith((address, "blob:"))]
        assert not [e["entry"] for e in page.events("Log.entryAdded") if e["entry"]["level"] == "error"]
        assert not page.events("Runtime.exceptionThrown")
        # A script in the page, as an attacker would plant one, does not run.
        page.run("window.planting = document.createElement('script'); planting.append('window.planted = 1')")
        page.run("document.body.append(planting)")
        assert page.run("window.planted") is None
        page.close()


def test_names_cannot_become_markup_or_formulas(page: Page, images: dict[str, Path], tmp_path: Path) -> None:
    odd = tmp_path / "=1+1,<img src=x onerror=alert(1)>.png"
    odd.write_bytes(images["good"].read_bytes())
    judge(page, odd)
    assert page.text("name") == odd.name
    assert page.run("document.querySelectorAll('#rows img').length") == 1
    line = page.run("import('./page/history.js').then(history => history.csv())").splitlines()[1]
    assert line.startswith("\"'=1+1,<img")
