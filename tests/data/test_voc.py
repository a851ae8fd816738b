from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fcdd.data import voc
from fcdd.data.sources import Images
from fcdd.errors import DataError


def write_year(place: Path, lists: dict[str, list[str]]) -> None:
    (place / "ImageSets" / "Main").mkdir(parents=True)
    (place / "JPEGImages").mkdir()
    for name, lines in lists.items():
        (place / "ImageSets" / "Main" / f"{name}.txt").write_text("\n".join(lines) + "\n")
        for line in lines:
            pixels = np.zeros((10, 14, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(place / "JPEGImages" / f"{line.split()[0]}.jpg")


def stems(source: object) -> list[str]:
    assert isinstance(source, Images)
    return [path.stem for path in source.paths]


def test_lists_are_read_as_voc_writes_them(tmp_path: Path) -> None:
    lists = {"horse_trainval": ["a -1", "b  1", "c  0", "d -1"], "horse_test": ["e  1", "f -1"]}
    write_year(tmp_path / "VOCdevkit" / "VOC2007", lists)
    write_year(tmp_path / "VOCdevkit" / "VOC2012", {"horse_train": ["x 1", "y -1"], "horse_val": ["z 1", "w -1"]})
    split = voc.split_others(tmp_path, size=8)
    assert stems(split.nominal) == ["a", "d"]
    assert stems(split.anomalies) == ["b"]
    assert stems(split.test) == ["f", "e"]
    assert split.labels.tolist() == [0, 1]
    assert split.kinds == ["other", "horse"]
    assert split.test[torch.tensor([1])].shape == (1, 3, 8, 8)
    assert split.provenance == "PASCAL VOC2007, trainval: 1 horse and 2 others, test: 1 and 1"
    later = voc.split_others(tmp_path / "VOCdevkit" / "VOC2012")
    assert (stems(later.nominal), stems(later.anomalies), stems(later.test)) == (["y"], ["x"], ["w", "z"])
    assert voc.watermarked(tmp_path) == []


def test_images_with_a_photographers_mark_are_in_neither_part(tmp_path: Path) -> None:
    lists = {"horse_trainval": ["a -1", "b 1", "m 1"], "horse_test": ["e 1", "f -1", "n 1"]}
    year = tmp_path / "VOCdevkit" / "VOC2007"
    write_year(year, lists)
    (year / voc.MARKED_LIST).write_text("m\nn\nelsewhere\n")
    split = voc.split_others(tmp_path, size=8)
    assert (stems(split.anomalies), stems(split.test)) == (["b"], ["f", "e"])
    assert [path.stem for path in voc.watermarked(tmp_path)] == ["m", "n"]


def write_imagenet(place: Path, count: int) -> None:
    for part in ("train", "val"):
        for wnid in ("n01440764", "n02102040"):
            (place / part / wnid).mkdir(parents=True)
            for index in range(count):
                Image.new("RGB", (12, 9)).save(place / part / wnid / f"{part}{index}.png")


def test_nominal_are_imagenets_images_as_in_the_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lists = {"horse_trainval": ["a -1", "b  1"], "horse_test": ["e  1", "f -1"]}
    write_year(tmp_path / "VOCdevkit" / "VOC2007", lists)
    with pytest.raises(DataError, match=r"image-net\.org.*voc-others"):
        voc.split(tmp_path)
    write_imagenet(tmp_path / "imagenet", 4)
    split = voc.split(tmp_path, size=8)
    assert (len(split.nominal), stems(split.anomalies)) == (8, ["b"])
    assert stems(split.test) == ["val0", "val1", "val2", "val3"] * 2 + ["e"]
    assert split.labels.tolist() == [0] * 8 + [1]
    assert "ImageNet, 8 nominal images of train and 8 of val" in split.provenance
    monkeypatch.setattr(voc, "NOMINAL", 4)
    few = voc.split(tmp_path, size=8).nominal
    assert stems(few) == ["train0", "train2"] * 2  # of each class its share


def test_damage_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no VOCdevkit/VOC2007/JPEGImages.*VOCtrainval_06-Nov-2007\.tar"):
        voc.split(tmp_path)
    write_year(tmp_path / "VOC2007", {"horse_trainval": ["a -1", "b 1"], "horse_test": ["c 1", "d -1"]})
    with pytest.raises(DataError, match="neither cat_trainval"):
        voc.split_others(tmp_path, "cat")
    test = tmp_path / "VOC2007" / "ImageSets" / "Main" / "horse_test.txt"
    for text, reason in (
        ("c 1\nd 7\n", "line 2"),
        ("c 1\n", "1 anomalous and 0 other"),
        ("c 1\nq -1\n", "q.jpg: missing"),
    ):
        test.write_text(text)
        with pytest.raises(DataError, match=reason):
            voc.split_others(tmp_path)


def test_the_real_horses(shared_data: Path) -> None:
    if not (shared_data / "VOCdevkit").is_dir():
        pytest.skip("VOCdevkit not found")
    split = voc.split_others(shared_data)
    assert split.anomalies is not None
    horses = len(split.anomalies) + int(split.labels.sum())
    assert (len(split.nominal) + len(split.anomalies) + len(split.test), horses) == (560, 240)
    marked = {path.stem for path in voc.watermarked(shared_data)}
    assert len(marked) == 7  # of the eight named, one is not in the folder
    test = np.array(stems(split.test))
    horses_found = {*stems(split.anomalies), *test[split.labels.numpy() == 1]}
    others = {*stems(split.nominal), *test[split.labels.numpy() == 0]}
    assert not marked & (horses_found | others)
