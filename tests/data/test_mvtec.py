from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from fcdd import images
from fcdd.data import mvtec
from fcdd.errors import DataError, ImageError


def write_class(place: Path) -> None:
    """Good images are gray 100; defects of type t have a square of level 200 at the place of their mask."""
    for folder, count in (("train/good", 4), ("test/good", 3), ("test/dent", 2), ("test/scratch", 3)):
        (place / folder).mkdir(parents=True)
        for number in range(count):
            pixels = np.full((60, 40, 3), 100, dtype=np.uint8)
            kind = folder.removeprefix("test/")
            if kind in ("dent", "scratch"):
                mask = np.zeros((60, 40), dtype=bool)
                mask[6 * number : 6 * number + 12, 8:24] = True
                pixels[mask] = 200
                (place / "ground_truth" / kind).mkdir(parents=True, exist_ok=True)
                images.save_png(mask, place / "ground_truth" / kind / f"{number:03}_mask.png")
            images.save_png(pixels, place / folder / f"{number:03}.png")


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_split_of_written_files(tmp_path: Path) -> None:
    write_class(tmp_path / "plate")
    split = mvtec.split(tmp_path, "plate", size=20)
    assert split.nominal[torch.arange(4)].unique().tolist() == [100]
    assert split.labels.tolist() == [0, 0, 0, 1, 1, 1, 1, 1]
    assert split.kinds == ["good"] * 3 + ["dent"] * 2 + ["scratch"] * 3
    assert split.mask is not None
    assert split.mask(0).shape == (60, 40)
    assert not split.mask(0).any()
    for index in range(3, 8):
        small = images.resize_mask(split.mask(index), 20)
        image = split.test[torch.tensor([index])][0, 0].numpy()
        assert (image[small] > 150).all()
        assert (image[~small] < 150).all()
    assert split.provenance == "MVTec-AD plate, 4 training and 8 test images"
    assert pickle.loads(pickle.dumps(split)).mask(4).sum() == 12 * 16


def test_semi_supervised_moves_one_anomaly_of_each_type(tmp_path: Path) -> None:
    write_class(tmp_path / "plate")
    split = mvtec.split(tmp_path, "plate", size=20, semi_supervised=True, generator=generator())
    assert split.kinds == ["good"] * 3 + ["dent"] + ["scratch"] * 2
    assert split.anomalies is not None
    assert split.anomaly_masks is not None
    assert split.anomaly_masks.shape == (2, 1, 20, 20)
    assert split.anomaly_masks.dtype == torch.uint8
    images = split.anomalies[torch.arange(2)]
    assert torch.equal((images[:, :1] > 150).byte(), split.anomaly_masks)
    kept = mvtec.split(tmp_path, "plate", 20, semi_supervised=True, authors_protocol=True, generator=generator())
    assert len(kept.kinds) == 8
    assert kept.anomaly_masks is not None
    assert torch.equal(kept.anomaly_masks, split.anomaly_masks)
    assert "authors' protocol" in kept.provenance
    drawn = {
        tuple(item.path.name for item in mvtec._draw(mvtec.read_test(tmp_path / "plate"), generator(seed)))
        for seed in range(30)
    }
    assert len(drawn) == 6  # every pair of a dent and a scratch is drawn for some seed
    with pytest.raises(ValueError, match="generator"):
        mvtec.split(tmp_path, "plate", semi_supervised=True)


def test_what_is_missing_or_unfit_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"MVTec-AD has bottle, cable.*mvtec_anomaly_detection\.tar\.xz"):
        mvtec.split(tmp_path, "plate")
    write_class(tmp_path / "plate")
    mask = tmp_path / "plate" / "ground_truth" / "dent" / "001_mask.png"
    images.save_png(np.zeros((40, 60), dtype=bool), mask)
    with pytest.raises(DataError, match=r"001_mask\.png: 60 × 40, its image .*dent/001\.png: 40 × 60"):
        mvtec.split(tmp_path, "plate")
    mask.unlink()
    with pytest.raises(DataError, match=r"dent/001\.png: 0 masks of it in ground_truth/dent"):
        mvtec.split(tmp_path, "plate")
    images.save_png(np.zeros((60, 40), dtype=bool), mask)
    (tmp_path / "plate" / "train" / "good" / "002.png").write_bytes(b"")
    with pytest.raises(ImageError, match=r"002\.png: empty"):
        mvtec.split(tmp_path, "plate")
    for path in (tmp_path / "plate" / "train" / "good").iterdir():
        path.unlink()
    with pytest.raises(DataError, match="train/good: no images there"):
        mvtec.split(tmp_path, "plate")


def test_the_real_bottles(shared_data: Path) -> None:
    if not (shared_data / "mvtec" / "bottle").is_dir():
        pytest.skip("MVTec bottle not found")
    split = mvtec.split(shared_data, "bottle", size=64, semi_supervised=True, generator=generator())
    assert (len(split.nominal), len(split.test)) == (209, 80)
    assert split.kinds.count("good") == 20
    assert split.anomalies is not None
    assert len(split.anomalies) == 3
    assert split.mask is not None
    assert split.mask(79).shape == (384, 384)
    assert split.mask(79).any()
