from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fcdd import images
from fcdd.errors import DataError
from fcdd.folders import layout, read_folder, read_test


def write(root: Path, *names: str, shape: tuple[int, int] = (6, 9)) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full(shape, 255, dtype=np.uint8)).save(root / name)


def write_good(root: Path, count: int = 10) -> None:
    write(root, *(f"good/{number}.png" for number in range(count)))


def relative(root: Path, paths: list[Path] | list[Path | None]) -> list[str | None]:
    return [str(path.relative_to(root)) if path else None for path in paths]


def test_good_images_alone(tmp_path: Path) -> None:
    write_good(tmp_path, 12)
    read = read_folder(tmp_path / "good")
    assert relative(tmp_path, read.good) == [f"good/{number}.png" for number in range(12)]
    assert read[1:] == ([], [], [], [])


def test_defects_and_masks_are_matched(tmp_path: Path) -> None:
    write_good(tmp_path)
    write(tmp_path, "bad/dent/1.png", "bad/dent/2.bmp", "bad/dent/4.png", "bad/hole/1.png", "bad/loose.png")
    write(tmp_path, "masks/dent/1.png", "masks/2_mask.png", "masks/hole/1_mask.png", "masks/loose.bmp")
    read = read_folder(tmp_path / "good", tmp_path / "bad", tmp_path / "masks")
    pairs = dict(zip(relative(tmp_path, read.defects), relative(tmp_path, read.masks), strict=True))
    assert pairs == {
        "bad/dent/1.png": "masks/dent/1.png",
        "bad/dent/2.bmp": "masks/2_mask.png",
        "bad/dent/4.png": None,
        "bad/hole/1.png": "masks/hole/1_mask.png",
        "bad/loose.png": "masks/loose.bmp",
    }
    assert sorted(read.kinds) == ["defect", "dent", "dent", "dent", "hole"]


def test_masks_that_fit_none_two_or_not_at_all(tmp_path: Path) -> None:
    write_good(tmp_path)
    write(tmp_path, "bad/dent/1.png", "bad/hole/1.png", "masks/1.png")
    folders = (tmp_path / "good", tmp_path / "bad", tmp_path / "masks")
    with pytest.raises(DataError, match=r"masks/1\.png: fits several images"):
        read_folder(*folders)
    (tmp_path / "masks" / "1.png").unlink()
    write(tmp_path, "masks/dent/1.png", "masks/dent/1.bmp")
    with pytest.raises(DataError, match="two masks fit it"):
        read_folder(*folders)
    (tmp_path / "masks" / "dent" / "1.bmp").unlink()
    write(tmp_path, "masks/dent/77.png", "masks/hole/88_mask.png")
    with pytest.raises(DataError, match=r"2 masks fit no image[\s\S]*77\.png[\s\S]*88_mask\.png"):
        read_folder(*folders)
    (tmp_path / "masks" / "dent" / "77.png").unlink()
    (tmp_path / "masks" / "hole" / "88_mask.png").unlink()
    write(tmp_path, "masks/dent/1.png", shape=(9, 6))
    with pytest.raises(DataError, match=r"masks/dent/1\.png: 6 × 9, its image .*bad/dent/1\.png: 9 × 6"):
        read_folder(*folders)


def test_too_few_and_misplaced(tmp_path: Path) -> None:
    write_good(tmp_path, 9)
    with pytest.raises(DataError, match="9 usable good images, at least 10"):
        read_folder(tmp_path / "good")
    write_good(tmp_path)
    write(tmp_path, "good/defects/1.png")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "good")
    for other in ("good/defects", "good", "link", "."):
        with pytest.raises(DataError, match="one folder lies inside the other"):
            read_folder(tmp_path / "good", tmp_path / other)
    with pytest.raises(DataError, match="no usable images"):
        read_folder(tmp_path / "good", tmp_path / "empty")
    with pytest.raises(DataError, match="no such folder"):
        read_folder(tmp_path / "absent")


def test_all_bad_files_are_told_at_once_or_skipped(tmp_path: Path) -> None:
    write_good(tmp_path, 12)
    write(tmp_path, "bad/1.png", "bad/2.png", "masks/1.png", "masks/2.png")
    spoilt = ["good/3.png", "good/8.png", "bad/2.png", "masks/1.png"]
    for name in spoilt:
        (tmp_path / name).write_bytes(b"spoilt")
    folders = (tmp_path / "good", tmp_path / "bad", tmp_path / "masks")
    with pytest.raises(DataError, match="4 files cannot be used") as caught:
        read_folder(*folders)
    assert all(name in str(caught.value) for name in spoilt)
    write(tmp_path, "bad/3.png")
    read = read_folder(*folders, skip_bad=True)
    assert len(read.good) == 10
    assert relative(tmp_path, read.defects) == ["bad/3.png"]
    assert {Path(error.source) for error in read.bad} == {tmp_path / name for name in spoilt}


@pytest.mark.parametrize(
    ("good", "defects", "masks", "kinds"),
    [
        ("good", "defects", "masks", ["good", "defect", "defect"]),
        ("good", "defects/dent", "masks/dent", ["good", "dent", "dent"]),
        ("test/good", "test/dent", "ground_truth/dent", ["good", "dent", "dent"]),
        ("good", "dent", "ground_truth/dent", ["good", "dent", "dent"]),
    ],
)
def test_layouts_of_test_folders(tmp_path: Path, good: str, defects: str, masks: str, kinds: list[str]) -> None:
    write(tmp_path, f"{good}/1.png", f"{defects}/1.png", f"{defects}/2.png", f"{masks}/1_mask.png")
    paths, labels, read_kinds, mask_paths = read_test(tmp_path)
    assert relative(tmp_path, paths) == [f"{good}/1.png", f"{defects}/1.png", f"{defects}/2.png"]
    assert labels == [0, 1, 1]
    assert read_kinds == kinds
    assert relative(tmp_path, mask_paths) == [None, f"{masks}/1_mask.png", None]


def test_what_is_evaluated_is_what_is_checked(tmp_path: Path) -> None:
    files = ("good/1.png", "test/x.png", "defects/dent/2.png", "ground_truth/dent/2_mask.png")
    write(tmp_path, *files)
    place = layout(tmp_path)
    assert (place.train, place.good, place.defects) == (tmp_path / "good",) * 2 + ((tmp_path / "defects",),)
    assert relative(tmp_path, read_test(tmp_path).mask_paths) == [None, "ground_truth/dent/2_mask.png"]
    assert layout(tmp_path / "defects" / "dent").defects == ()  # a flat folder: all images in it are good


def test_other_layouts_are_explained(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no good/ in it\. Expected good/ and defects/"):
        read_test(tmp_path)
    write(tmp_path, "good/1.png")
    with pytest.raises(DataError, match="no folder of defects beside good/"):
        read_test(tmp_path)
    write(tmp_path, "dent/1.png")
    (tmp_path / "dent" / "2.png").write_bytes(b"spoilt")
    with pytest.raises(DataError, match=r"1 files cannot be used[\s\S]*2\.png"):
        read_test(tmp_path)
    assert len(read_test(tmp_path, skip_bad=True).paths) == 2


def test_real_bottles_in_either_place(shared_data: Path) -> None:
    root = shared_data / "mvtec" / "bottle"
    if not root.is_dir():
        pytest.skip(f"{root} not found")
    whole = read_test(root)
    assert read_test(root / "test") == whole
    assert len(whole.paths) == 83
    assert whole.kinds.count("broken_small") == 22
    for path, label, mask in zip(whole.paths, whole.labels, whole.mask_paths, strict=True):
        assert (mask is None) == (label == 0)
        assert mask is None or (mask.parent.name, mask.stem) == (path.parent.name, f"{path.stem}_mask")
    assert images.load_mask(whole.mask_paths[-1] or "").any()
