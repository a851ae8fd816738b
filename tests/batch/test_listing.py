"""Manifests of every kind, cut into spans that hold every line once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fcdd.batch.listing import Listing, of_folder
from fcdd.errors import DataError


def entries(listing: Listing, size: int) -> list[tuple[int, str, str]]:
    found = []
    for span in listing.spans(size):
        read = list(listing.read(span))
        assert read[0][0].item == span.first
        assert len(read) <= size
        found += [(entry.item, entry.file, path) for entry, path in read]
    return found


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "one.png\nsub/two.png\n\n   \n/three.png"),
        ("b.txt", "\ufeffone.png\r\nsub/two.png\r\n/three.png\r\n"),
        ("c.csv", 'id,Path,label\n1,one.png,x\n2,"sub/two.png",y\n\n3,/three.png,z\n'),
        ("d.csv", "file\none.png\nsub/two.png\n/three.png\n"),
        ("e.jsonl", '{"path": "one.png", "n": 1}\n"sub/two.png"\n{"file": "/three.png"}\n'),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_every_kind_gives_every_path_once_relative_to_the_manifest(
    tmp_path: Path, name: str, content: str, size: int
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8", newline="")
    listing = Listing.of_manifest(tmp_path / name)
    assert listing.fingerprint()[1] == 3
    assert entries(listing, size) == [
        (0, "one.png", str(tmp_path / "one.png")),
        (1, "sub/two.png", str(tmp_path / "sub/two.png")),
        (2, "/three.png", "/three.png"),
    ]


def test_lines_without_a_path_are_kept_to_be_reported(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text('{"path": "a.png"}\n{"path": 3}\n{oops\n[]\n')
    found = entries(Listing.of_manifest(tmp_path / "m.jsonl"), 2)
    assert [(item, path == "") for item, _, path in found] == [(0, False), (1, True), (2, True), (3, True)]
    assert found[2][1] == "{oops"
    (tmp_path / "m.csv").write_text("label,path\nx,a.png\nonly\n")
    assert [path == "" for _, _, path in entries(Listing.of_manifest(tmp_path / "m.csv"), 9)] == [False, True]


def test_what_is_no_manifest_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("a.png,b.png\n")
    with pytest.raises(DataError, match="path or file"):
        Listing.of_manifest(tmp_path / "m.csv")
    with pytest.raises(DataError, match=r"\.txt, \.csv or \.jsonl"):
        Listing.of_manifest(tmp_path / "m.pdf")


def test_a_manifest_that_changes_meanwhile_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_text("a.png\nb.png\nc.png\n")
    listing = Listing.of_manifest(path)
    spans = list(listing.spans(2))
    path.write_text("a.png\nb.png\nx.png\n")
    assert len(list(listing.read(spans[0]))) == 2
    with pytest.raises(DataError, match="changed"):
        list(listing.read(spans[1]))


def test_a_folder_is_listed_with_any_name_and_its_fingerprint_sees_a_replaced_image(tmp_path: Path) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    names = ["2.png", "10.png", "line\nbreak.png", os.fsdecode(b"caf\xe9.png")]
    for name in names:
        (folder / name).write_bytes(b"x")
    (folder / "gone.png").symlink_to(tmp_path / "nowhere")
    listing = of_folder(folder, tmp_path / "inputs.jsonl")
    found = entries(listing, 2)
    assert {file for _, file, _ in found} == {*names, "gone.png"}
    assert [file for _, file, _ in found][:2] == ["2.png", "10.png"]
    assert all(path == str(folder / file) for _, file, path in found)
    before = listing.fingerprint()
    assert before == of_folder(folder, tmp_path / "inputs.jsonl").fingerprint()
    (folder / "2.png").write_bytes(b"other")
    assert before != of_folder(folder, tmp_path / "inputs.jsonl").fingerprint()
    assert "bytes" in json.loads((tmp_path / "inputs.jsonl").read_text().splitlines()[0])
