"""What several tests of the page do on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

PATIENCE = 20_000  # milliseconds; the machine may be busy
expect.set_options(timeout=PATIENCE)


@contextmanager
def opened(browser: Browser, address: str, ready: bool = True, **device: Any) -> Iterator[Page]:
    """A tab of its own on this address, in a window of 1400 × 900 or of `device`."""
    context = browser.new_context(**({"viewport": {"width": 1400, "height": 900}} | device))
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(address)
    if ready:
        expect(page.locator("body")).to_have_attribute("data-ready", "yes")
    yield page
    context.close()


def listed(page: Page, count: int) -> None:
    """Wait until this many images are listed and none is on its way."""
    expect(page.locator("#rows tr")).to_have_count(count)
    expect(page.locator("#progress")).to_be_hidden()


def judge(page: Page, *paths: Path) -> None:
    """Choose images and wait for their verdicts."""
    before = page.locator("#rows tr").count()
    page.locator("#files").set_input_files(list(paths))
    listed(page, before + len(paths))


def slide(page: Page, identity: str, value: float) -> None:
    page.locator(f"#{identity}").evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')); }", value
    )


def box(page: Page) -> list[int]:
    """The first region as it is drawn: x, y, width, height."""
    first = page.locator("#boxes rect").first
    return [int(first.get_attribute(name) or "") for name in ("x", "y", "width", "height")]


def text(page: Page, identity: str) -> str:
    return page.locator(f"#{identity}").inner_text()
