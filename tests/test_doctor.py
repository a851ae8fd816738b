"""The data doctor: each finding provoked once in an otherwise clean folder, and real parts that must pass."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from fcdd.doctor import Diagnosis, Finding, check

Pixels = NDArray[np.uint8]
SIDE = 96


def part(rng: np.random.Generator, side: int = SIDE) -> Pixels:
    """A disc on a dark ground, the same place and light each time, with a grain and noise of its own."""
    rows, columns = np.mgrid[:side, :side] / side - 0.5
    disc = (rows**2 + columns**2 < 0.16)[:, :, None] * np.array([110.0, 80.0, 60.0])
    grain = Image.fromarray(rng.normal(0, 12, (24, 24)).astype(np.float32)).resize(
        (side, side), Image.Resampling.BICUBIC
    )
    pixels = 50 + disc + np.asarray(grain)[:, :, None] + rng.normal(0, 2, (side, side, 3)) + rng.normal(0, 2)
    return np.clip(pixels, 0, 255).astype(np.uint8)


def save(pixels: Pixels, path: Path, **options: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # never through a link into the clean folder
    Image.fromarray(pixels).save(path, **options)


def spot(at: int = 40) -> Pixels:
    mask = np.zeros((SIDE, SIDE), dtype=np.uint8)
    mask[at : at + 12, at : at + 12] = 255
    return mask


@pytest.fixture(scope="session")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MVTec's layout: 50 and 22 good images, 8 defects of two types with masks."""
    root, rng = tmp_path_factory.mktemp("doctor") / "parts", np.random.default_rng(0)
    for number in range(72):
        folder = "train" if number < 50 else "test"
        save(part(rng), root / folder / "good" / f"{number:03}.png")
    for number in range(8):
        kind, pixels = ("dent", "spot")[number % 2], part(rng)
        pixels[spot() > 0] = 255 * (number % 2)
        save(pixels, root / "test" / kind / f"{number:03}.png")
        save(spot(), root / "ground_truth" / kind / f"{number:03}_mask.png")
    return root


@pytest.fixture
def parts(clean: Path, tmp_path: Path) -> Path:
    """A copy of the clean folder to be spoilt; of links, because thousands of real files are slow to remove."""
    return Path(shutil.copytree(clean, tmp_path / "parts", copy_function=os.link))


def only(diagnosis: Diagnosis) -> Finding:
    """The one finding there is: what was provoked, and no false alarm beside it."""
    assert len(diagnosis.findings) == 1, diagnosis.text()
    return diagnosis.findings[0]


def test_a_clean_folder_has_no_findings(clean: Path) -> None:
    diagnosis = check(clean, quiet=True)
    assert diagnosis.findings == ()
    assert diagnosis.ok
    assert diagnosis.counts == {"train good": 50, "test good": 22, "defects": 8, "masks": 8}
    assert diagnosis.sizes == {"96 × 96": 80}
    assert "1 / 13 = 7.7 %" in diagnosis.text()  # 12 of 50 held out


def test_flat_and_simple_layouts_and_given_folders(clean: Path, tmp_path: Path) -> None:
    flat = check(clean / "train" / "good", quiet=True)
    assert flat.findings == ()
    assert flat.counts == {"train good": 50, "test good": 0, "defects": 0, "masks": 0}
    simple = tmp_path / "simple"
    for source, target in (("train/good", "good"), ("test/dent", "defects/dent"), ("ground_truth/dent", "masks/dent")):
        shutil.copytree(clean / source, simple / target)
    found = check(simple, quiet=True)
    assert found.findings == ()
    assert found.counts == {"train good": 50, "test good": 0, "defects": 4, "masks": 4}
    (simple / "defects" / "dent").rename(simple / "dent")
    (simple / "defects").rmdir()
    assert check(simple, quiet=True).to_dict() == found.to_dict()
    given = {"good": simple / "good", "defects": clean / "test" / "spot", "masks": clean / "ground_truth" / "spot"}
    assert check(simple, **given, quiet=True).counts == found.counts


def spoil_unreadable(parts: Path) -> str:
    file = parts / "test" / "good" / "050.png"
    start = file.read_bytes()[:2000]
    file.unlink()
    file.write_bytes(start)
    return "test/good/050.png"


def spoil_duplicate(parts: Path) -> str:
    shutil.copy(parts / "train/good/001.png", parts / "train/good/copy.png")
    return "train/good/001.png train/good/copy.png"


def spoil_across(parts: Path) -> str:
    pixels = np.asarray(Image.open(parts / "train/good/001.png"))
    save(pixels, parts / "test/good/other.bmp")  # other bytes, the same pixels
    return "test/good/other.bmp train/good/001.png"


def spoil_label(parts: Path) -> str:
    (parts / "test/good/link.png").symlink_to(parts / "test/dent/000.png")
    return "test/dent/000.png test/good/link.png"


def spoil_near(parts: Path) -> str:
    save(np.asarray(Image.open(parts / "train/good/001.png")), parts / "test/good/again.jpg", quality=90)
    return "test/good/again.jpg train/good/001.png"


def spoil_aspect(parts: Path) -> str:
    save(part(np.random.default_rng(1))[:80], parts / "test/good/050.png")
    return "test/good/050.png"


def spoil_size(parts: Path) -> str:
    pixels = Image.open(parts / "test/good/050.png").resize((120, 120), Image.Resampling.BICUBIC)
    save(np.asarray(pixels), parts / "test/good/050.png")
    return "test/good/050.png"


def spoil_gray(parts: Path) -> str:
    for name in ("050", "051"):
        file = parts / f"test/good/{name}.png"
        save(np.asarray(Image.open(file).convert("L")), file)
    return "test/good/050.png test/good/051.png"


def spoil_compression(parts: Path) -> str:
    save(part(np.random.default_rng(2)), parts / "test/dent/poor.jpg", quality=30)
    save(spot(), parts / "ground_truth/dent/poor.png")
    save(part(np.random.default_rng(3)), parts / "test/dent/fair.jpg", quality=60)
    save(spot(), parts / "ground_truth/dent/fair.png")
    return "test/dent/poor.jpg"


def spoil_suffix(parts: Path) -> str:
    (parts / "test/good/050.png").rename(parts / "test/good/050.TIF")
    return "test/good/050.TIF"


def spoil_format(parts: Path) -> str:
    (parts / "train/good/phone.HEIC").write_bytes(b"x")
    return "train/good/phone.HEIC"


def spoil_nesting(parts: Path) -> str:
    (parts / "test/dent").rename(parts / "train/good/Defects")
    shutil.rmtree(parts / "ground_truth/dent")
    return "train/good/Defects"


def spoil_mask_name(parts: Path) -> str:
    save(spot(), parts / "ground_truth/dent/nothing.png")
    return "ground_truth/dent/nothing.png"


def spoil_mask_twice(parts: Path) -> str:
    save(spot(), parts / "ground_truth/dent/000_mask.bmp")
    return "ground_truth/dent/000_mask.bmp ground_truth/dent/000_mask.png"


def spoil_mask_size(parts: Path) -> str:
    save(spot()[:90], parts / "ground_truth/dent/000_mask.png")
    return "ground_truth/dent/000_mask.png"


def spoil_mask_empty(parts: Path) -> str:
    save(0 * spot(), parts / "ground_truth/dent/000_mask.png")
    return "ground_truth/dent/000_mask.png"


def spoil_mask_inverse(parts: Path) -> str:
    save(255 - spot(), parts / "ground_truth/dent/000_mask.png")
    return "ground_truth/dent/000_mask.png"


def spoil_mask_good(parts: Path) -> str:
    save(spot(), parts / "ground_truth/good/050_mask.png")
    return "ground_truth/good/050_mask.png"


def spoil_mask_good_empty(parts: Path) -> str:
    save(0 * spot(), parts / "ground_truth/good/050_mask.png")
    return "ground_truth/good/050_mask.png"


def spoil_mask_missing(parts: Path) -> str:
    (parts / "ground_truth/dent/000_mask.png").unlink()
    return "test/dent/000.png"


def spoil_mask_jpeg(parts: Path) -> str:
    (parts / "ground_truth/dent/000_mask.png").unlink()
    soft = np.asarray(Image.fromarray(spot()).filter(ImageFilter.GaussianBlur(3)))
    save(soft, parts / "ground_truth/dent/000_mask.jpg")
    return "ground_truth/dent/000_mask.jpg"


@pytest.mark.parametrize(
    ("spoil", "severity", "code"),
    [
        (spoil_unreadable, "error", "unreadable"),
        (spoil_mask_jpeg, "error", "unreadable"),
        (spoil_duplicate, "warning", "duplicate"),
        (spoil_across, "error", "duplicate-across"),
        (spoil_label, "error", "duplicate-across"),
        (spoil_near, "warning", "near-duplicate"),
        (spoil_aspect, "warning", "odd-aspect"),
        (spoil_size, "note", "odd-size"),
        (spoil_gray, "warning", "gray-and-colour"),
        (spoil_compression, "warning", "compressed"),
        (spoil_suffix, "note", "wrong-suffix"),
        (spoil_format, "warning", "ignored-files"),
        (spoil_mask_name, "error", "mask-without-image"),
        (spoil_mask_twice, "error", "mask-ambiguous"),
        (spoil_mask_size, "error", "mask-size"),
        (spoil_mask_empty, "warning", "mask-empty"),
        (spoil_mask_inverse, "warning", "mask-large"),
        (spoil_mask_good, "error", "mask-on-good"),
        (spoil_mask_good_empty, "warning", "empty-mask-on-good"),
        (spoil_mask_missing, "note", "defect-without-mask"),
        (spoil_nesting, "error", "nested-folders"),
    ],
)
def test_each_fault_gives_its_one_finding(parts: Path, spoil: Callable[[Path], str], severity: str, code: str) -> None:
    files = spoil(parts).split()
    diagnosis = check(parts, quiet=True)
    finding = only(diagnosis)
    assert (finding.severity, finding.code, sorted(finding.files)) == (severity, code, files)
    assert diagnosis.ok == (severity != "error")
    assert finding.message.endswith(".")
    assert finding.advice.endswith((".", "?"))


def darker(pixels: Pixels) -> Pixels:
    return (pixels * 0.6).astype(np.uint8)


def blurred(pixels: Pixels) -> Pixels:
    return np.asarray(Image.fromarray(pixels).filter(ImageFilter.GaussianBlur(2)))


def bluer(pixels: Pixels) -> Pixels:
    return np.clip(pixels + np.array([0, 0, 30]), 0, 255).astype(np.uint8)


def empty(pixels: Pixels) -> Pixels:
    return np.roll(pixels, SIDE // 2, axis=(0, 1))  # the disc in the corners: same light, another picture


@pytest.mark.parametrize(
    ("change", "word"), [(darker, "darker"), (blurred, "blurred"), (bluer, "bluer"), (empty, "another picture")]
)
def test_an_image_unlike_the_rest_is_pointed_out(parts: Path, change: Callable[[Pixels], Pixels], word: str) -> None:
    save(change(part(np.random.default_rng(5))), parts / "train/good/odd.png")
    finding = only(check(parts, quiet=True))
    assert (finding.severity, finding.code, finding.files) == ("warning", "unlike-the-rest", ("train/good/odd.png",))
    assert word in finding.message


def test_many_unlike_images_are_a_second_population(parts: Path) -> None:
    for number in range(15):
        file = parts / "train" / "good" / f"{number:03}.png"
        save(bluer(np.asarray(Image.open(file))), file)
    finding = only(check(parts, quiet=True))
    assert (finding.code, len(finding.files)) == ("two-populations", 15)


def test_another_light_in_the_test_is_noted(parts: Path) -> None:
    for file in (parts / "test" / "good").iterdir():
        save((np.asarray(Image.open(file)).clip(10) - 10).astype(np.uint8), file)
    finding = only(check(parts, quiet=True))
    assert (finding.severity, finding.code) == ("note", "lighting-shift")
    assert "10 gray levels darker" in finding.message


@pytest.mark.parametrize(
    ("count", "severity", "says"),
    [
        (0, "error", "0 usable"),
        (9, "error", "9 usable"),
        (10, "warning", "1 / 3 = 33.3 %"),
        (49, "warning", "1 / 13 = 7.7 %"),
    ],
)
def test_few_good_images(clean: Path, tmp_path: Path, count: int, severity: str, says: str) -> None:
    for file in sorted((clean / "train" / "good").iterdir())[:count]:
        shutil.copy(file, tmp_path)
    diagnosis = check(tmp_path, quiet=True)
    finding = only(diagnosis)
    assert finding.severity == severity
    assert says in finding.message
    assert diagnosis.counts["train good"] == count


def test_tiny_images(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for number in range(50):
        save(part(rng, 63), tmp_path / f"{number}.png")
    finding = only(check(tmp_path, quiet=True))
    assert (finding.severity, finding.code, len(finding.files)) == ("warning", "tiny", 50)


def test_defects_inside_the_good_folder_are_not_counted_as_good(parts: Path, tmp_path: Path) -> None:
    good = tmp_path / "flat"
    shutil.copytree(parts / "train" / "good", good)
    shutil.copytree(parts / "test" / "dent", good / "defects")
    diagnosis = check(good, quiet=True)
    nested, bare = diagnosis.findings
    assert (nested.severity, nested.code, nested.files) == ("error", "nested-folders", ("defects",))
    assert bare.code == "defect-without-mask"
    assert diagnosis.counts == {"train good": 50, "test good": 0, "defects": 4, "masks": 0}
    named = check(parts, good=parts / "test", quiet=True)
    assert "nested-folders" in [finding.code for finding in named.findings]


def test_folders_that_cannot_be_checked(clean: Path) -> None:
    assert only(check(clean / "nowhere", quiet=True)).code == "missing-folder"
    assert only(check(clean / "train/good/000.png", quiet=True)).code == "missing-folder"
    assert only(check(clean, masks=clean / "nowhere", quiet=True)).files == (str(clean / "nowhere"),)
    several = only(check(clean.parent, quiet=True))
    assert (several.code, several.files) == ("several-classes", ("parts",))


def test_text_shortens_long_lists_and_the_dictionary_keeps_them(parts: Path) -> None:
    for number in range(25):
        (parts / "train" / "good" / f"empty{number:02}.png").touch()
        shutil.copy(parts / "train" / "good" / f"{number:03}.png", parts / "train" / "good" / f"again{number:02}.png")
    diagnosis = check(parts, quiet=True)
    text = diagnosis.text()
    assert "Cannot be used: empty, zero bytes." in text
    assert "empty09.png\n      and 15 more\n    → Export it again" in text
    assert text.count("The same picture, 2 times in train good.") == 10
    assert "and 15 more like this." in text
    assert text.index("1 error:") < text.index("25 warnings:")
    assert text.endswith("Remedy the errors first.")
    loaded = json.loads(json.dumps(diagnosis.to_dict()))
    assert loaded["ok"] is False
    assert [len(finding["files"]) for finding in loaded["findings"]] == [25, *[2] * 25]


def test_it_does_not_import_torch() -> None:
    subprocess.run([sys.executable, "-c", "import sys, fcdd.doctor; assert 'torch' not in sys.modules"], check=True)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bottle", {"near-duplicate"}),  # 069 and 070 are two shots of one bottle
        ("pill", set()),
        ("screw", {"near-duplicate", "lighting-shift"}),  # the test images are 13 gray levels darker
    ],
)
def test_real_parts_raise_no_false_alarm(shared_data: Path, name: str, expected: set[str]) -> None:
    root = shared_data / "mvtec" / name
    if not root.is_dir():
        pytest.skip(f"MVTec {name} not found at {root}")
    diagnosis = check(root, quiet=True)
    assert diagnosis.ok
    assert {finding.code for finding in diagnosis.findings} == expected, diagnosis.text()
    assert diagnosis.counts["defects"] == diagnosis.counts["masks"] > 0


def test_real_parts_with_faults(shared_data: Path, tmp_path: Path) -> None:
    source = shared_data / "mvtec"
    if not source.is_dir():
        pytest.skip(f"MVTec not found at {source}")
    for number in range(80):
        (tmp_path / f"{number:03}.jpg").symlink_to(source / "hazelnut/train/good" / f"{number:03}.jpg")
    pixels = np.asarray(Image.open(source / "hazelnut/train/good/100.jpg"))
    save(blurred(blurred(blurred(pixels))), tmp_path / "blurred.png")
    save(darker(darker(pixels)), tmp_path / "dark.png")
    shutil.copy(source / "bottle/train/good/000.jpg", tmp_path / "bottle.jpg")
    save(np.asarray(Image.open(source / "hazelnut/train/good/007.jpg")), tmp_path / "again.jpg", quality=60)
    found = {file: finding.code for finding in check(tmp_path, quiet=True).findings for file in finding.files}
    alone = dict.fromkeys(("blurred.png", "dark.png", "bottle.jpg"), "unlike-the-rest")
    assert found == alone | dict.fromkeys(("again.jpg", "007.jpg"), "near-duplicate")
