"""Judging images on the page, in a real Chromium, against what the runtime says."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fcdd.detector.runtime import Runtime
from fcdd.images import find

from ..conftest import Deployed
from .chromium import Browser, Page
from .using import IDLE, box, judge, slide


def test_a_defect_is_shown_with_its_reason(page: Page, models: dict[str, Runtime], images: dict[str, Path]) -> None:
    expected = models["plate"].predict(images["stain"])
    judge(page, images["stain"])
    shown = page.text("verdict")
    assert "NG" in shown
    assert f"{expected.score:#.3g}" in shown
    assert f"{expected.p_value:#.3g}" in shown
    assert page.run("document.querySelectorAll('#boxes rect').length") == len(expected.regions) > 0
    region = expected.regions[0]
    assert box(page) == [region.x, region.y, region.width, region.height]
    assert page.wait("find('heat').naturalWidth") == 128
    assert "Reject" in page.text("said")


def test_what_is_seen_is_the_image_under_its_heat(page: Page, images: dict[str, Path], tmp_path: Path) -> None:
    judge(page, images["stain"])
    page.run("find('outline').click()")
    shots = []
    for opacity in (0, 100):
        slide(page, "opacity", opacity)
        page.wait("find('image').complete && find('heat').complete")
        page.screenshot(tmp_path / "shot.png")
        place = page.run("['left', 'top', 'right', 'bottom'].map(side => find('frame').getBoundingClientRect()[side])")
        shots.append(np.asarray(Image.open(tmp_path / "shot.png").convert("RGB").crop(place).resize((128, 128)), int))
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
    assert f"rejects 0 of {count} good parts" in page.text("effect")
    assert "1 of 2 images" in page.text("effect")
    assert page.text("said") == "2 images judged: 1 OK, 0 REVIEW, 1 NG"
    slide(page, "threshold", 0)
    assert f"rejects {count} of {count} good parts (100\u00a0%) and 2 of 2" in page.text("effect")
    slide(page, "threshold", 1000)
    assert f"rejects 0 of {count} good parts (0\u00a0%) and 0 of 2" in page.text("effect")
    page.run("find('threshold').focus()")
    page.press("Home", 36)
    assert f"rejects {count} of" in page.run("find('threshold').getAttribute('aria-valuetext')")
    for position in range(100, 600, 100):
        slide(page, "threshold", position)
        above = float(page.run("document.querySelector('#effect b').innerText"))
        lost = int(page.text("effect").partition("rejects ")[2].partition(" of")[0])
        assert lost in {sum(s > above * edge for s in calibration.scores) for edge in (0.995, 1.005)}
    page.run("find('reset').click()")
    assert f"Above {calibration.threshold(calibration.reject):#.3g}" in page.text("effect")


def test_a_folder_is_judged_listed_and_saved(
    chromium: Browser, page: Page, deployed: Deployed, models: dict[str, Runtime], tmp_path: Path
) -> None:
    paths = find(deployed.plates / "test")
    notes, broken = (deployed.plates / "test" / name for name in ("notes.txt", "broken.png"))
    notes.write_text("not a image")
    broken.write_bytes(paths[0].read_bytes()[:200])
    try:
        page.choose("folder", deployed.plates / "test")
        page.wait(f"{IDLE} === {len(paths) + 1}")
    finally:
        notes.unlink()
        broken.unlink()
    assert "1 file left out" in page.text("notice")
    assert "1 not judged" in page.text("tally")
    chromium.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.run("find('csv').click()")
    for _ in range(200):
        page.run("new Promise(resolve => setTimeout(resolve, 20))")
        if found := list(tmp_path.glob("*.csv")):
            break
    rows = list(csv.DictReader(io.StringIO(found[0].read_text("utf-8-sig"))))
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
    data = {"items": [], "files": [str(stains)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        page.call("Input.dispatchDragEvent", type=kind, x=400, y=400, data=data)
        if kind == "dragOver":
            assert page.run("find('stage').classList.contains('over-it')")
    page.wait(f"{IDLE} === {len(list(stains.iterdir()))}")
    assert page.text("name").startswith("stain/")
    assert not page.run("find('stage').classList.contains('over-it')")


def test_a_image_that_the_browser_cannot_show_is_still_judged(
    page: Page, images: dict[str, Path], tmp_path: Path
) -> None:
    scan = tmp_path / "scan.tif"
    Image.open(images["stain"]).save(scan)
    judge(page, scan)
    page.wait("!find('unseen').hidden")
    assert "NG" in page.text("verdict")
    assert page.wait("find('heat').naturalWidth") == 128


def test_the_camera_takes_a_image(page: Page) -> None:
    page.run("find('open-camera').click()")
    page.wait("find('camera').open && find('video').videoWidth")
    page.run("find('take').click()")
    page.wait(f"{IDLE} === 1")
    assert page.text("name").startswith("camera ")
    assert page.run("find('video').srcObject") is None


def test_another_model_is_chosen(page: Page, images: dict[str, Path]) -> None:
    judge(page, images["stain"])
    page.run("find('model').value = 'other'; find('model').dispatchEvent(new Event('change'))")
    page.wait("find('title').innerText === 'other'")
    assert "session" not in page.text("effect")  # the image was judged by the first
    judge(page, images["stain"])
    assert "1 of 1 image" in page.text("effect")


def test_the_session_is_cleared(page: Page, images: dict[str, Path]) -> None:
    judge(page, images["good"], images["stain"])
    assert page.run("find('empty').hidden")
    page.run("find('clear').click()")
    assert page.text("verdict") == "No image yet."
    assert page.run("document.querySelectorAll('#rows tr').length") == 0
    assert page.run("find('shown').hidden && find('csv').disabled")
