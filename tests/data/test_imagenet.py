from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from fcdd import images
from fcdd.data import imagenet
from fcdd.data.sources import Images
from fcdd.errors import DataError


def write_classes(folder: Path, counts: dict[str, int]) -> None:
    for wnid, count in counts.items():
        (folder / wnid).mkdir(parents=True)
        for number in range(count):
            images.save_png(np.full((4, 6, 3), number, dtype=np.uint8), folder / wnid / f"{wnid}_{number}.png")


def test_the_thirty_classes_are_thirty() -> None:
    assert len(imagenet.IMAGENET30) == len(set(imagenet.IMAGENET30.values())) == 30
    assert imagenet.wnid("american_alligator") == imagenet.wnid("American alligator") == "n01698640"
    assert imagenet.wnid("n01440764") == "n01440764"
    with pytest.raises(DataError, match="one of the paper's classes: acorn"):
        imagenet.wnid("tench")


def test_the_paper_s_classes_are_preferred(tmp_path: Path) -> None:
    paper = list(imagenet.IMAGENET30.values())[:20]
    write_classes(tmp_path / "train", {paper[0]: 3, "n01440764": 1})
    write_classes(tmp_path / "val", dict.fromkeys([*paper, "n01440764"], 2))
    split = imagenet.split(tmp_path, "acorn", size=4)
    assert isinstance(split.test, Images)
    assert len(split.nominal) == 3
    assert len(split.test) == 40
    assert sorted(set(split.kinds)) == sorted(list(imagenet.IMAGENET30)[:20])
    assert [split.test.paths[at].parent.name for at in torch.where(split.labels == 0)[0]] == [paper[0]] * 2
    assert "20 of the paper's 30" in split.provenance
    chosen = imagenet.split(tmp_path, "acorn", classes=["n01440764", "airliner"])
    assert set(chosen.kinds) == {"acorn", "n01440764", "airliner"}


def test_missing_classes_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"train: no such folder.*ILSVRC2012_img_train\.tar"):
        imagenet.split(tmp_path, "acorn")
    write_classes(tmp_path / "train", {"n12267677": 1, "n02690373": 0})
    (tmp_path / "val").mkdir()
    (tmp_path / "val" / "ILSVRC2012_val_00000001.JPEG").write_bytes(b"flat")
    with pytest.raises(DataError, match=r"val: no class folders.*sort the images"):
        imagenet.split(tmp_path, "acorn")
    write_classes(tmp_path / "val", {"n12267677": 1, "n02690373": 1})
    with pytest.raises(DataError, match="val: no class folder n02701002"):
        imagenet.split(tmp_path, "acorn", classes=["ambulance"])
    with pytest.raises(DataError, match="n02690373: no images"):
        imagenet.split(tmp_path, "airliner")


def test_exposure_leaves_out_what_the_paper_tests(tmp_path: Path) -> None:
    corpus = tmp_path / "imagenet22k" / "fall11_whole_extracted"
    write_classes(corpus, {"n00000001": 2, "n00000002": 3, "n12267677": 4, "n01440764": 5})
    paths, provenance = imagenet.exposure_files(tmp_path)
    assert {path.parent.name for path in paths} == {"n00000001", "n00000002", "n01440764"}
    assert "10 images of 3 classes" in provenance
    assert "30 classes only" in provenance
    write_classes(tmp_path / "imagenet" / "train", {"n01440764": 1, "n12267677": 1})
    paths, provenance = imagenet.exposure_files(tmp_path, exclude=["n00000002"])
    assert {path.parent.name for path in paths} == {"n00000001"}
    assert "without the 32 classes" in provenance
    with pytest.raises(DataError, match="no images left"):
        imagenet.exposure_files(tmp_path, exclude=["n00000001", "n00000002"])


def test_imagenette(shared_data: Path) -> None:
    root = shared_data / "imagenette"
    if not root.is_dir():
        pytest.skip(f"{root} not found")
    split = imagenet.split(shared_data, "n03000684", size=64)
    assert (len(split.nominal), len(split.test)) == (80, 400)
    assert int(split.labels.sum()) == 360
    assert "10 classes (all in train and val, 0 of the paper's 30 among them)" in split.provenance
    assert split.test[torch.tensor([0, 399])].shape == (2, 3, 64, 64)
    paths, _ = imagenet.train_files(root, exclude=["n03000684"])
    assert len(paths) == 720


def test_images_are_stretched_to_a_square(tmp_path: Path) -> None:
    """The paper resizes to 256 × 256: nothing of an image is cut off."""
    gradient = np.tile(np.linspace(0, 255, 60).astype(np.uint8)[None, :, None], (20, 1, 3))
    for part in ("train", "val"):
        (tmp_path / part / "n01440764").mkdir(parents=True)
        Image.fromarray(gradient).save(tmp_path / part / "n01440764" / "0.png")
    image = imagenet.split(tmp_path, "n01440764", size=20).test[torch.tensor([0])][0, 0]
    assert (image[:, 0] < 15).all()
    assert (image[:, -1] > 240).all()


def test_the_tables_word_for_a_class_is_known() -> None:
    assert imagenet.wnid("Rotary dial telephone") == imagenet.wnid("dial telephone")
