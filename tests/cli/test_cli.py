"""The commands as an inspection engineer types them, on files, with every way they can go wrong."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from fcdd import images
from fcdd.cli import app

from ..plates import write_plates


@pytest.fixture(scope="module")
def plates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_plates(tmp_path_factory.mktemp("plates"))


@pytest.fixture(scope="module")
def model(plates: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "plate.safetensors"
    code, out, err = fcdd("train", plates / "train" / "good", "-o", path, "--quality", "fast")
    assert code == 0, err
    assert "trained on 21 good images" in out
    assert "smallest level this many images support is 12 %" in out
    assert "good, held out" in path.with_suffix(".html").read_text()
    return path


def fcdd(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_predict_writes_scores_results_and_overlays(model: Path, plates: Path, tmp_path: Path) -> None:
    code, out, _ = fcdd("predict", model, plates / "test", "-o", tmp_path / "out", "--json")
    assert code == 0
    told = json.loads(out)
    assert told["images"] == 21
    with (tmp_path / "out" / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    lines = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_text().splitlines()]
    assert [row["file"] for row in rows] == [line["file"] for line in lines]
    assert [float(row["score"]) for row in rows] == pytest.approx([line["score"] for line in lines])
    for line in lines:
        overlay = Image.open(tmp_path / "out" / line["overlay"])
        assert overlay.width == 128 < overlay.height  # a strip below the image says what is seen
        for region in line["regions"]:
            assert 0 <= region["x"] < region["x"] + region["width"] <= 128
    assert all(line["overlay"] in (tmp_path / "out" / "index.html").read_text() for line in lines)
    stains = [float(row["score"]) for row in rows if row["file"].startswith("stain")]
    assert min(stains) > np.median([float(row["score"]) for row in rows if row["file"].startswith("good")])


def test_exit_codes_and_outputs_that_exist(model: Path, plates: Path, tmp_path: Path) -> None:
    defects, out = plates / "test" / "stain", tmp_path / "out"
    assert fcdd("predict", model, defects, "-o", out, "--fail-on", "ng")[0] == 1
    code, _, err = fcdd("predict", model, defects, "-o", out)
    assert (code, "--overwrite" in err) == (2, True)
    assert fcdd("predict", model, defects, "-o", out, "--overwrite")[0] == 0
    assert fcdd("predict", model, defects, "-o", tmp_path / "x", "--fail-on", "sometimes")[0] == 2
    assert fcdd("train", plates / "train" / "good", "-o", model)[0] == 2


def test_evaluate_measures_and_writes_its_page(model: Path, plates: Path, tmp_path: Path) -> None:
    code, out, _ = fcdd("evaluate", model, plates, "-o", tmp_path / "e.html", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["image_auroc"] > 0.8
    assert told["pixel_auroc"] > 0.9
    assert set(told["verdicts"]) == {"good", "scratch", "stain", "chip", "dent", "missing"}
    page = (tmp_path / "e.html").read_text()
    assert "AUPRO" in page
    assert not re.search(r"(src|href)=.?https?:", page)


def test_calibrate_and_drift(model: Path, plates: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.safetensors"
    code, out, err = fcdd("calibrate", model, plates / "test" / "good", "-o", new, "--max-false-rejects", "0.2")
    assert code == 0, err
    assert "Calibrated on 6 good images" in out
    code, _, err = fcdd(
        "calibrate", model, plates / "test" / "good", "-o", tmp_path / "n2.safetensors", "--max-false-rejects", "0.01"
    )
    assert (code, "93 more calibration images" in err) == (2, True)
    code, _, err = fcdd("calibrate", model, plates / "train" / "good", "-o", tmp_path / "n3.safetensors")
    assert (code, "were trained on" in err) == (2, True)
    defects = ["--defects", plates / "test" / "stain"]
    good = plates / "test" / "good"
    code, out, _ = fcdd("calibrate", model, good, "-o", tmp_path / "f1.safetensors", *defects, "--best-f1", "--json")
    assert code == 0
    assert json.loads(out)["reject_above"] > 0
    assert fcdd("calibrate", model, good, "-o", tmp_path / "n4.safetensors", *defects)[0] == 2
    code, out, _ = fcdd("drift", model, plates / "test" / "good", "--json")
    assert (code, json.loads(out)["drifted"]) == (0, False)
    code, out, _ = fcdd("drift", model, plates / "test" / "stain", "--json", "--level", "0.05")
    assert json.loads(out)["drifted"]


def test_a_few_defects_and_a_region_of_interest(plates: Path, tmp_path: Path) -> None:
    roi = np.zeros((128, 128), np.uint8)
    roi[16:112, 16:112] = 255
    images.save_png(roi, tmp_path / "roi.png")
    code, out, err = fcdd(
        "train", plates / "train" / "good", "-o", tmp_path / "m.safetensors", "--roi", tmp_path / "roi.png",
        "--defects", plates / "test" / "stain", "--masks", plates / "ground_truth" / "stain", "--quality", "fast",
    )  # fmt: skip
    assert code == 0, err
    assert "and 3 defects" in out
    seen = ["--defects", plates / "test" / "stain", "--best-f1"]
    code, _, err = fcdd("calibrate", tmp_path / "m.safetensors", plates / "test" / "good", *seen)
    assert (code, "3 of these images were trained on" in err) == (2, True)


def test_whole_images_of_other_things(plates: Path, tmp_path: Path) -> None:
    stains = ["--defects", plates / "test" / "stain", "--whole"]
    command = ["train", plates / "train" / "good", "-o", tmp_path / "m.safetensors", *stains, "--quality", "fast"]
    code, _, err = fcdd(*command, "--masks", plates / "ground_truth" / "stain")
    assert (code, "no masks" in err) == (2, True)
    code, out, err = fcdd(*command, "--json")
    assert code == 0, err
    assert json.loads(out)["defects"] == 3


def test_odd_files_give_the_right_pixels_or_the_right_error(model: Path, plates: Path, tmp_path: Path) -> None:
    path = images.find(plates / "test" / "chip")[0]
    plain = images.load(path)
    grey = np.asarray(Image.fromarray(plain).convert("L"))
    turned = Image.fromarray(np.rot90(plain))
    exif = turned.getexif()
    exif[0x0112] = 6  # to be shown turned a quarter clockwise
    odd = tmp_path / "odd"
    odd.mkdir()
    Image.fromarray(grey.astype(np.uint16) * 257).save(odd / "a16.png")
    Image.fromarray(grey).save(odd / "b8.png")
    Image.fromarray(plain).convert("CMYK").save(odd / "cmyk.tif")
    turned.save(odd / "exif.png", exif=exif)
    shutil.copy(path, odd / "plain.png")
    code, out, err = fcdd("predict", model, odd, "-o", tmp_path / "out", "--json")
    assert code == 0, err
    lines = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_text().splitlines()]
    scores = {line["file"]: line["score"] for line in lines}
    assert scores["a16.png"] == pytest.approx(scores["b8.png"], rel=1e-5)
    assert scores["exif.png"] == pytest.approx(scores["plain.png"], rel=1e-5)
    assert scores["cmyk.tif"] == pytest.approx(scores["plain.png"], rel=0.05)
    (odd / "cut.png").write_bytes(path.read_bytes()[:2000])
    (odd / "empty.png").touch()
    Image.new("1", (20_000, 20_000)).save(odd / "bomb.png")
    code, out, err = fcdd("predict", model, odd, "-o", tmp_path / "out2")
    assert (code, out) == (2, "")
    assert "3 of 8 files cannot be used" in err
    assert all(name in err for name in ("cut.png", "empty.png", "bomb.png", "--skip-bad"))
    assert not (tmp_path / "out2").exists()
    code, out, _ = fcdd("predict", model, odd, "-o", tmp_path / "out2", "--skip-bad", "--json")
    assert (code, json.loads(out)["images"], len(json.loads(out)["skipped"])) == (0, 5, 3)


def test_check_finds_what_is_wrong(plates: Path, tmp_path: Path) -> None:
    assert fcdd("check", plates)[0] == 0
    broken = tmp_path / "parts"
    shutil.copytree(plates / "train" / "good", broken)
    (broken / "zz.png").write_bytes(b"no image")
    code, out, _ = fcdd("check", broken)
    assert code == 1
    assert "zz.png" in out


@pytest.mark.parametrize("command", ["predict", "evaluate", "drift", "calibrate"])
def test_a_damaged_model_is_refused(command: str, model: Path, plates: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "d.safetensors"
    content = bytearray(model.read_bytes())
    content[-100] ^= 1
    damaged.write_bytes(bytes(content))
    code, _, err = fcdd(command, damaged, plates)
    assert (code, "does not match its checksum" in err) == (2, True)


def test_version_and_help_do_without_torch() -> None:
    code, out, _ = fcdd("--version")
    assert (code, out.strip()) == (0, "0.1.0")
    assert "train" in fcdd("--help")[1]
