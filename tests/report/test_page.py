"""The page: its numbers, its safety with hostile names, its self-containment, and its size."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from fcdd.detector.calibration import Calibration, Limits, Verdict
from fcdd.metrics import PixelHistogram
from fcdd.regions import Region
from fcdd.report import Card, Item, ReportData, render
from fcdd.report.page import CHUNK, render_results

HOSTILE = '</script><script>alert("x")</script><img src=x onerror=alert(1)>.png'
IMAGE = np.zeros((20, 30, 3), np.uint8)


class Page(HTMLParser):
    """Tags with attributes, and the text of each script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script" and not self.scripts[-1][1]:
            self.scripts[-1] = (self.scripts[-1][0], data)
        else:
            self.text += data

    def json(self, name: str) -> list[dict[str, object]]:
        return next(json.loads(text) for attributes, text in self.scripts if attributes.get("id") == name)  # type: ignore[no-any-return]


def item(name: str, label: int | None, score: float, verdict: Verdict, kind: str = "") -> Item:
    regions = [Region(1, 2, 3, 4, 9, 0.5, 0.25)]
    return Item.of(name, score, IMAGE, label=label, kind=kind, verdict=verdict, p_value=0.5, regions=regions)


def written(report: ReportData, folder: Path) -> tuple[str, Page]:
    render(report, folder / "report.html")
    text = (folder / "report.html").read_text(encoding="utf-8")
    return text, Page(text)


@pytest.fixture
def report() -> ReportData:
    items = [
        item("a", 0, 0.1, Verdict.OK, "good"),
        item("b", 0, 0.3, Verdict.NG, "good"),
        item("c", 1, 0.2, Verdict.OK, "crack"),
        item("d", 1, 0.9, Verdict.NG, "hole_<big>"),
        item(HOSTILE, None, 0.5, Verdict.REVIEW, HOSTILE),
    ]
    pixels = PixelHistogram()
    pixels.update(np.array([1, 2, 3, 4], np.float32), np.array([False, True, False, True]))
    guarantee = str(Calibration(tuple(range(100))).guarantee(0.05))
    card = {"Data": {"fingerprint": "<i>sha</i>"}}
    return ReportData("T <x>", "S & s", items, Limits(0.2, 0.25), [Card("AUPRO", "0.9")], pixels.ranking(), guarantee,
                      0.01, card, ["note <z>"])  # fmt: skip


def rows_of(text: str, table: int) -> dict[str, list[str]]:
    """The rows of one of the page's tables: heading → cells."""
    rows = re.findall(r"<tr><th>(.*?)</th>(.*?)</tr>", text.split("<tbody>")[table + 1].split("</tbody>")[0])
    return {name: re.findall(r">([^<>]+)</td>", cells) for name, cells in rows}


def test_words_come_before_statistics(report: ReportData, tmp_path: Path) -> None:
    text, page = written(report, tmp_path)
    assert "Of 1,000 good parts about 10 are rejected." in page.text
    assert "Of the 2 good parts here 1 is rejected." in page.text
    assert "Of your 2 defects 1 passes (0 to review, 1 rejected)." in page.text
    assert rows_of(text, 0) == {"Defects": ["1", "–", "1"], "Good parts": ["1", "–", "1"]}
    before, fold = text.split("<details")
    assert not re.search("AUROC|AUPRO|p-value", before)
    assert "Image AUROC</dt><dd>0.750</dd><p>How often" in fold  # 3 of 4 pairs in order
    assert "Pixel AUROC</dt><dd>0.750</dd><p>How often" in fold
    assert "AUPRO</dt><dd>0.9<" in fold
    assert "not the probability" in fold


def test_types_are_told_apart_the_hardest_first(report: ReportData, tmp_path: Path) -> None:
    text, page = written(report, tmp_path)
    table = rows_of(text, 1)
    assert table["good"] == ["2", "0.80", "1", "–", "1"]
    assert table["crack"] == ["1", "0.80", "1", "–", "–"]
    assert table["hole_&lt;big&gt;"] == ["1", "3.60", "–", "–", "1"]
    assert list(table).index("crack") < list(table).index("hole_&lt;big&gt;")
    assert rows_of(text, 2) == {"crack": ["0.500"], "hole_&lt;big&gt;": ["1.000"]}
    assert "100 good images" in page.text
    assert "logical anomalies" in page.text


def test_a_rate_that_is_not_promised_is_not_told(report: ReportData, tmp_path: Path) -> None:
    text, _ = written(replace(report, false_rejects=None), tmp_path)
    assert "Of 1,000" not in text


def test_items_are_sorted_and_mistakes_are_the_worst_errors(report: ReportData, tmp_path: Path) -> None:
    more = [item("e", 1, 0.05, Verdict.OK), item("f", 1, 0.21, Verdict.REVIEW), item("g", 0, 0.22, Verdict.REVIEW)]
    _, page = written(replace(report, items=[*report.items, *more]), tmp_path)
    entries = {str(entry["name"]): entry for entry in page.json("items")}
    assert list(entries) == ["d", HOSTILE, "b", "g", "f", "c", "a", "e"]
    worst = sorted(entries, key=lambda name: -float(str(entries[name]["error"])))
    assert worst[:5] == ["e", "c", "b", "f", "g"]  # far below the limit, little below it, above it, then reviews
    assert [entries[name]["mistake"] for name in worst[:4]] == ["defect passed"] * 2 + ["good part rejected", ""]
    assert entries[HOSTILE]["error"] == 0
    assert entries["d"]["words"] == "3.6 × the reject limit"
    assert entries["d"]["size"] == [30, 20]
    assert entries["d"]["regions"] == [
        {"x": 1, "y": 2, "width": 3, "height": 4, "area": 9, "peak": 0.5, "share": 0.25}
    ]  # fmt: skip


def test_folders_that_all_images_share_are_left_out(tmp_path: Path) -> None:
    names = [str(tmp_path / "set" / "dent" / "1.png"), str(tmp_path / "set" / "good" / "2.png")]
    items = [item(name, None, 1.0, Verdict.OK) for name in names]
    _, page = written(ReportData("t", "", items), tmp_path)
    assert [entry["name"] for entry in page.json("items")] == [
        os.path.join("dent", "1.png"),
        os.path.join("good", "2.png"),
    ]


def test_nothing_runs_or_loads_but_our_own_script(report: ReportData, tmp_path: Path) -> None:
    text, page = written(report, tmp_path)
    running = [(attributes, code) for attributes, code in page.scripts if "type" not in attributes]
    assert len(running) == 1
    digest = base64.b64encode(hashlib.sha256(running[0][1].encode()).digest()).decode()
    policy = next(a["content"] or "" for tag, a in page.tags if tag == "meta" and "http-equiv" in a)
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert not [tag for tag, a in page.tags if "src" in a or "href" in a or any(name.startswith("on") for name in a)]
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert "<x>" not in text
    assert "<z>" not in text
    assert "<i>sha" not in text
    assert "T <x>" in page.text


def test_unlabelled_and_empty_reports(tmp_path: Path) -> None:
    text, _ = written(ReportData("t", "", [item("a", None, 1.0, Verdict.OK)]), tmp_path)
    assert "AUROC</dt>" not in text
    assert "<h3>ROC" not in text
    assert 'class="row unlabelled"' in text
    text, page = written(ReportData("t", "", []), tmp_path)
    assert page.json("items") == []
    without = Item.of("a", 1.0, IMAGE)
    text, _ = written(ReportData("t", "", [without]), tmp_path)
    assert "1 images" in text


def test_two_thousand_images(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (16, 16, 3), np.uint8)
    items = [Item.of(f"{i:04}.png", i / 7, noise, label=i % 2, verdict=Verdict.OK) for i in range(2000)]
    _, page = written(ReportData("many", "", items), tmp_path)
    blocks = [page.json(f"block-{number}") for number in range(2000 // CHUNK)]
    assert sum(len(block) for block in blocks) == 2000
    assert blocks[0][0] == items[-1].thumbnails
    assert blocks[-1][-1] == items[0].thumbnails


def test_written_whole_or_not_at_all(report: ReportData, tmp_path: Path) -> None:
    render(report, tmp_path / "report.html")
    before = (tmp_path / "report.html").read_bytes()
    broken = item("a", 0, 0.1, Verdict.OK)
    object.__setattr__(broken, "thumbnails", {"input": object()})
    with pytest.raises(TypeError):
        render(ReportData("t", "", [broken]), tmp_path / "report.html")
    assert (tmp_path / "report.html").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_results_show_the_files_beside_the_page_and_names_stay_text(tmp_path: Path) -> None:
    calibration = Calibration(tuple(i / 100 for i in range(1, 101)))
    shared = {"p_value": 0.5, "regions": []}
    rows = [
        {"file": "a.png", "score": 0.5, "verdict": "OK", "overlay": "overlays/a.png", **shared},
        {"file": HOSTILE, "score": 3.0, "verdict": "NG", "overlay": "overlays/50 % #1?.png", **shared},
    ]
    render_results("T <x>", "S", rows, calibration, tmp_path / "index.html")
    page = Page((tmp_path / "index.html").read_text(encoding="utf-8"))
    assert [tag for tag, attributes in page.tags if tag == "script" and "type" not in attributes] == ["script"]
    assert not [tag for tag, _ in page.tags if tag == "img"]
    first, second = page.json("items")  # the highest score first
    assert (first["name"], first["words"], first["verdict"]) == (HOSTILE, "3.0 × the reject limit", "NG")
    assert (first["file"], second["file"]) == ("overlays/50%20%25%20%231%3F.png", "overlays/a.png")
    assert "T <x>" in page.text
    assert calibration.promise in page.text.replace("\u00a0", " ")
