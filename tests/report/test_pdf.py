"""The report to be signed off: what stands in it, in which order, and that odd inputs do not end it."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from pathlib import Path

import numpy as np

from fcdd import images
from fcdd.detector import load
from fcdd.report import pdf

from ..batch.brightness import write_model
from ..invoke import fcdd


def texts(path: Path) -> list[str]:
    """All texts of the PDF's pages, in the order in which they are drawn."""
    found = []
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", path.read_bytes(), re.DOTALL):
        try:
            content = zlib.decompress(stream)
        except zlib.error:  # an image
            continue
        for text in re.findall(rb"\(((?:[^()\\]|\\.)*)\) Tj", content):
            found.append(re.sub(rb"\\(.)", rb"\1", text).decode("latin-1"))
    return found


def grey(path: Path, level: int, size: tuple[int, int] = (40, 60)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    images.save_png(np.full(size, level, np.uint8), path)


def test_it_says_what_was_judged_by_what_and_with_which_result(tmp_path: Path) -> None:
    model = write_model(tmp_path / "m.onnx")
    for name, level in (("dark", 20), ("lit", 150), ("bright", 250)):
        grey(tmp_path / "parts" / f"{name}.png", level)
    code, out, err = fcdd("predict", model, tmp_path / "parts", "-o", tmp_path / "out", "--pdf", "--json")
    assert code == 0, err
    assert json.loads(out)["pdf"] == str(tmp_path / "out" / "report.pdf")
    found = texts(tmp_path / "out" / "report.pdf")
    whole = " ".join(found)
    assert hashlib.sha256(model.read_bytes()).hexdigest() in whole
    assert f"3 images of {tmp_path / 'parts'}" in whole
    assert "NG above a score of 0.5, REVIEW above " in whole
    assert load(model).calibration.promise.split(".")[0] in whole
    assert {"2 NG", "0 REVIEW", "1 OK", "Name", "Date", "Signature"} <= set(found)
    assert found[-2:] == ["Page 1 of ", "1"]
    assert [text for text in found if text.endswith(".png")] == ["bright.png", "lit.png", "dark.png"]
    assert "1.96 × the reject limit" in found
    assert "at 0, 0: 60 × 40 px" in found
    assert "no region" in found


def test_many_images_and_odd_names_fill_pages(tmp_path: Path) -> None:
    model = write_model(tmp_path / "m.onnx")
    odd = {"中.png": r"\u4e2d.png", "Prüfteil (2).png": "Prüfteil (2).png"}
    for name in odd:
        grey(tmp_path / "parts" / name, 240)
    long = "/".join(["folder-with-a-long-name"] * 9)
    grey(tmp_path / "parts" / long / "the-end.png", 230, (400, 8))
    for number in range(30):
        grey(tmp_path / "parts" / f"{number:02}.png", number)
    code, _, err = fcdd("predict", model, tmp_path / "parts", "-o", tmp_path / "out", "--pdf")
    assert code == 0, err
    found = texts(tmp_path / "out" / "report.pdf")
    assert set(odd.values()) <= set(found)
    assert any(text.endswith("the-end.png") for text in found)
    pages = [found[at : at + 2] for at, text in enumerate(found) if text.startswith("Page ")]
    assert pages == [[f"Page {number} of ", str(len(pages))] for number in range(1, len(pages) + 1)]
    assert len(pages) >= 4
    ends = [found.index(name) for name in ("29.png", "00.png", "Signature")]
    assert ends == sorted(ends)


def test_remarks_stand_before_the_images(tmp_path: Path) -> None:
    model = write_model(tmp_path / "m.onnx")
    grey(tmp_path / "part.png", 200)
    assert fcdd("predict", model, tmp_path / "part.png", "-o", tmp_path / "out")[0] == 0
    rows = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_bytes().splitlines()]
    written = pdf.write(tmp_path / "out", model, load(model), tmp_path / "part.png", rows, ["Brighter than usual."])
    found = texts(written)
    assert found.index("Note: Brighter than usual.") < found.index("part.png")
    assert "1 image of" in " ".join(found)


def test_it_is_refused_where_there_are_no_overlays_to_show(tmp_path: Path) -> None:
    code, _, err = fcdd("predict", write_model(tmp_path / "m.onnx"), tmp_path, "--on", "ray", "--pdf")
    assert (code, "--pdf: not with --on ray" in err) == (2, True)
