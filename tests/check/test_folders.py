"""Layouts of folders, told by names alone: the files in them are empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from fcdd.check.folders import locate, nested, unusable

LAYOUTS = {
    "flat": {"train good": ["a.png", "sub/b.png"]},
    "simple": {"train good": ["good/a.png"], "defects": ["defects/x.png"], "masks": ["masks/x.png"]},
    "kinds": {"train good": ["good/a.png"], "defects": ["dent/x.png", "hole/y.png"], "masks": ["masks/dent/x.png"]},
    "mvtec": {
        "train good": ["train/good/a.png"],
        "test good": ["test/good/b.png"],
        "defects": ["test/dent/x.png", "test/hole/y.png"],
        "masks": ["ground_truth/dent/x_mask.png"],
    },
    "masks in test": {
        "train good": ["train/a.png"],
        "defects": ["test/dent/x.png"],
        "masks": ["test/masks/dent/x.png"],
    },
}


def fill(root: Path, *files: str) -> None:
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).touch()


@pytest.mark.parametrize("groups", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_layouts(tmp_path: Path, groups: dict[str, list[str]]) -> None:
    fill(tmp_path, *(file for files in groups.values() for file in files))
    assert unusable(tmp_path, None, None, None) is None
    folders = locate(tmp_path, None, None, None)
    found = {group: [folders.name(path) for path in paths] for group, paths in folders.files().items()}
    assert {group: files for group, files in found.items() if files} == groups
    assert list(nested(folders)) == []


def test_given_folders_take_precedence(tmp_path: Path) -> None:
    fill(tmp_path, "root/train/a.png", "root/test/dent/x.png", "root/masks/x.png", "ok/b.png", "ng/y.png", "m/y.png")
    folders = locate(tmp_path / "root", tmp_path / "ok", tmp_path / "ng", tmp_path / "m")
    assert (folders.places, folders.base) == ([tmp_path / name for name in ("ok", "ng", "m")], tmp_path / "ng")
    assert folders.name(tmp_path / "ng" / "y.png") == (tmp_path / "ng" / "y.png").as_posix()  # not below the root
    fill(tmp_path, "kinds/good/a.png", "kinds/fine/b.png", "kinds/dent/x.png")
    folders = locate(tmp_path / "kinds", tmp_path / "kinds" / "fine", None, None)
    assert folders.places == [tmp_path / "kinds" / name for name in ("fine", "dent")]


@pytest.mark.parametrize(
    ("file", "good", "inside"),
    [
        ("train/good/Defects/x.png", None, ["train/good/Defects"]),
        ("good/sub/NG/x.png", None, ["good/sub/NG"]),
        ("defects/x.png", None, ["defects"]),  # in a flat folder of good images
        ("test/dent/x.png", "test", ["test/dent"]),
    ],
)
def test_groups_inside_each_other(tmp_path: Path, file: str, good: str | None, inside: list[str]) -> None:
    fill(tmp_path, file)
    folders = locate(tmp_path, tmp_path / good if good else None, None, None)
    (finding,) = nested(folders)
    assert (finding.severity, finding.code, list(finding.files)) == ("error", "nested-folders", inside)
    paths = [path for found in folders.files().values() for path in found]
    assert paths.count(tmp_path / file) == 1


def test_what_cannot_be_examined(tmp_path: Path) -> None:
    fill(tmp_path, "bottle/train/good/a.png", "pill/good/b.png", ".hidden/good/c.png", "notes/d.txt")
    several = unusable(tmp_path, None, None, None)
    assert several is not None
    assert (several.code, several.files) == ("several-classes", ("bottle", "pill"))
    assert unusable(tmp_path, tmp_path / "pill", None, None) is None
    file, nowhere = tmp_path / "notes/d.txt", tmp_path / "nowhere"
    closed = unusable(file, None, tmp_path, nowhere)
    assert closed is not None
    assert (closed.code, closed.files) == ("missing-folder", (str(file), str(nowhere)))
