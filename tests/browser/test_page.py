"""Judging images on the page, in a real Chromium, against what the runtime says."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from fcdd.detector.runtime import Runtime
from fcdd.images import find

from ..conftest import Deployed
from .using import box, judge, listed, slide, text


def test_a_defect_is_shown_with_its_reason(page: Page, models: dict[str, Runtime], images: dict[str, Path]) -> None:
    expected = models["plate"].predict(images["stain"])
    judge(page, images["stain"])
    shown = text(page, "verdict")
    assert "NG" in shown
    assert f"{expected.score:#.3g}" in shown
    assert f"{expected.p_value:#.3g}" in shown
    assert page.locator("#boxes rect").count() == len(expected.regions) > 0
    region = expected.regions[0]
    assert box(page) == [region.x, region.y, region.width, region.height]
    expect(page.locator("#heat")).to_have_js_property("naturalWidth", 128)
    expect(page.locator("#said")).to_contain_text("Reject")


def test_what_is_seen_is_the_image_under_its_heat(page: Page, images: dict[str, Path]) -> None:
    judge(page, images["stain"])
    page.locator("#outline").click()
    shots = []
    for opacity in (0, 100):
        slide(page, "opacity", opacity)
        for identity in ("image", "heat"):
            expect(page.locator(f"#{identity}")).to_have_js_property("complete", True)
        shot = Image.open(io.BytesIO(page.locator("#frame").screenshot())).convert("RGB")
        shots.append(np.asarray(shot.resize((128, 128)), int))
    plain = np.asarray(Image.open(images["stain"]).convert("RGB"), int)
    assert np.abs(shots[0] - plain)[8:-8, 8:-8].mean() < 6
    changed = np.abs(shots[1] - shots[0]).sum(2)
    x, y, width, height = box(page)
    assert changed[y : y + height, x : x + width].mean() > 5 * np.median(changed)


def test_the_threshold_shows_what_it_does_to_good_parts(
    page: Page, models: dict[str, Runtime], images: dict[str, Path]
) -> None:
    calibration = models["plate"].calibration
    count = len(calibration.scores)
    judge(page, images["good"], images["stain"])
    assert f"rejects 0 of {count} good parts" in text(page, "effect")
    assert "1 of 2 images" in text(page, "effect")
    expect(page.locator("#said")).to_have_text("2 images: 1 OK, 0 REVIEW, 1 NG")
    slide(page, "threshold", 0)
    assert f"rejects {count} of {count} good parts (100\u00a0%) and 2 of 2" in text(page, "effect")
    slide(page, "threshold", 1000)
    assert f"rejects 0 of {count} good parts (0\u00a0%) and 0 of 2" in text(page, "effect")
    page.locator("#threshold").press("Home")
    assert f"rejects {count} of" in (page.locator("#threshold").get_attribute("aria-valuetext") or "")
    for position in range(100, 600, 100):
        slide(page, "threshold", position)
        above = float(page.locator("#effect b").inner_text())
        lost = int(text(page, "effect").partition("rejects ")[2].partition(" of")[0])
        assert lost in {sum(s > above * edge for s in calibration.scores) for edge in (0.995, 1.005)}
    page.locator("#reset").click()
    assert f"Above {calibration.threshold(calibration.reject):#.3g}" in text(page, "effect")


def saved(page: Page) -> list[dict[str, str]]:
    """The rows of the CSV that the page offers."""
    with page.expect_download() as download:
        page.locator("#csv").click()
    return list(csv.DictReader(io.StringIO(download.value.path().read_text("utf-8-sig"))))


def test_a_folder_is_judged_listed_and_saved(page: Page, deployed: Deployed, models: dict[str, Runtime]) -> None:
    paths = find(deployed.plates / "test")
    notes, broken = (deployed.plates / "test" / name for name in ("notes.txt", "broken.png"))
    notes.write_text("no image")
    broken.write_bytes(paths[0].read_bytes()[:200])
    try:
        page.locator("#folder").set_input_files(deployed.plates / "test")
        listed(page, len(paths) + 1)
    finally:
        notes.unlink()
        broken.unlink()
    assert "1 file left out" in text(page, "notice")
    counts = [int(part.split()[0]) for part in text(page, "tally").split(", ")]
    assert sum(counts) == len(paths) + 1
    assert "1 not judged" in text(page, "tally")
    assert f"of {len(paths)} images of this session" in text(page, "effect")
    rows = saved(page)
    assert len(rows) == len(paths) + 1
    by_name = {row["file"]: row for row in rows}
    assert "damaged" in by_name["test/broken.png"]["problem"]
    for path in paths[:3]:
        row = by_name[f"test/{path.relative_to(deployed.plates / 'test')}"]
        expected = models["plate"].predict(path)
        assert float(row["score"]) == pytest.approx(expected.score, rel=1e-4)
        assert (row["verdict"], row["model"]) == (str(expected.verdict), "plate")


def test_folders_can_be_dropped(page: Page, deployed: Deployed) -> None:
    stains = deployed.plates / "test" / "stain"
    # Playwright has no drop of files from the system, Chromium's own protocol does.
    session = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(stains)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": kind, "x": 400, "y": 400, "data": data})
        if kind == "dragOver":
            expect(page.locator("#stage.over-it")).to_have_count(1)
    listed(page, len(list(stains.iterdir())))
    assert text(page, "name").startswith("stain/")
    expect(page.locator("#stage.over-it")).to_have_count(0)


def test_an_image_that_the_browser_cannot_show_is_still_judged(
    page: Page, images: dict[str, Path], tmp_path: Path
) -> None:
    scan = tmp_path / "scan.tif"
    Image.open(images["stain"]).save(scan)
    judge(page, scan)
    expect(page.locator("#unseen")).to_be_visible()
    assert "NG" in text(page, "verdict")
    expect(page.locator("#heat")).to_have_js_property("naturalWidth", 128)


def test_the_camera_takes_an_image(page: Page) -> None:
    page.locator("#open-camera").click()
    expect(page.locator("#camera")).to_be_visible()
    expect(page.locator("#video")).not_to_have_js_property("videoWidth", 0)
    page.locator("#take").click()
    listed(page, 1)
    assert text(page, "name").startswith("camera ")
    expect(page.locator("#video")).to_have_js_property("srcObject", None)


def test_another_model_judges_the_session_again(
    page: Page, models: dict[str, Runtime], images: dict[str, Path]
) -> None:
    judge(page, images["good"], images["stain"])
    assert text(page, "tally") == "1 OK, 0 REVIEW, 1 NG"
    page.locator("#model").select_option("other")
    expect(page.locator("#title")).to_have_text("other")
    expected = models["other"].predict(images["stain"]).verdict
    assert expected != "NG"  # its threshold is far away
    expect(page.locator("#tally")).not_to_contain_text("1 NG")
    expect(page.locator("#tally")).not_to_contain_text("waiting")
    listed(page, 2)
    assert "0 of 2 images" in text(page, "effect")
    assert [row["model"] for row in saved(page)] == ["other", "other"]


def test_the_time_in_the_csv_is_that_of_the_judgement(page: Page, images: dict[str, Path]) -> None:
    judge(page, images["good"])
    page.wait_for_timeout(1200)
    begun = datetime.now(UTC) - timedelta(seconds=0.1)
    page.locator("#model").select_option("other")
    expect(page.locator("#title")).to_have_text("other")
    listed(page, 1)
    (row,) = saved(page)
    assert row["model"] == "other"
    assert begun < datetime.fromisoformat(row["time"]) < datetime.now(UTC) + timedelta(seconds=0.1)


def test_the_session_is_cleared(page: Page, images: dict[str, Path]) -> None:
    judge(page, images["good"], images["stain"])
    expect(page.locator("#empty")).to_be_hidden()
    page.locator("#clear").click()
    assert text(page, "verdict") == "No image yet."
    listed(page, 0)
    expect(page.locator("#shown")).to_be_hidden()
    expect(page.locator("#csv")).to_be_disabled()
