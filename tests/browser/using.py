"""What several tests of the page do on it."""

from __future__ import annotations

from pathlib import Path

from .chromium import Page

IDLE = "find('progress').hidden && document.querySelectorAll('#rows tr').length"


def judge(page: Page, *paths: Path) -> None:
    """Choose images and wait for their verdicts."""
    before = page.run("document.querySelectorAll('#rows tr').length")
    page.choose("files", *paths)
    page.wait(f"{IDLE} === {before + len(paths)}")


def slide(page: Page, identity: str, value: float) -> None:
    page.run(f"find('{identity}').value = {value}; find('{identity}').dispatchEvent(new Event('input'))")


def box(page: Page) -> list[int]:
    """The first region as it is drawn: x, y, width, height."""
    names = "['x', 'y', 'width', 'height']"
    found = page.run(f"{names}.map(name => Number(document.querySelector('#boxes rect').getAttribute(name)))")
    return [int(value) for value in found]
