"""PASCAL VOC for the paper's Clever Hans experiment: horses, some watermarked, against images without a horse."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from fcdd.data import Split
from fcdd.data.sources import Images
from fcdd.errors import DataError
from fcdd.images import Fit

_REMEDY = "Unpack VOCtrainval_06-Nov-2007.tar and VOCtest_06-Nov-2007.tar from http://host.robots.ox.ac.uk/pascal/VOC/."


def split(root: Path, anomalous: str = "horse", size: int = 224, fit: Fit = "stretch") -> Split:
    """Images with an `anomalous` object are anomalous, all others nominal; (3, `size`, `size`) uint8, on demand.

    The training list's anomalous images are the labelled `anomalies`. The lists are trainval and test where both are
    present, else train and val (later years publish no test labels); images the lists mark as difficult (0) are
    left out.
    """
    place = folder(root)
    lists = place / "ImageSets" / "Main"
    parts = next((pair for pair in (("trainval", "test"), ("train", "val")) if _present(lists, anomalous, pair)), None)
    if parts is None:
        raise DataError(
            f"{lists}: neither {anomalous}_trainval.txt and _test.txt nor _train.txt and _val.txt. {_REMEDY}"
        )
    (nominal, anomalies), (good, bad) = (_listed(place, lists / f"{anomalous}_{part}.txt") for part in parts)
    return Split(
        name=f"voc/{anomalous}",
        nominal=Images(nominal, size, fit=fit),
        test=Images(good + bad, size, fit=fit),
        labels=torch.tensor([0] * len(good) + [1] * len(bad)),
        kinds=["other"] * len(good) + [anomalous] * len(bad),
        provenance=f"PASCAL {place.name}, {parts[0]}: {len(nominal)} nominal and {len(anomalies)} {anomalous}, "
        f"{parts[1]}: {len(good)} and {len(bad)}",
        anomalies=Images(anomalies, size, fit=fit),
    )


def watermarked(root: Path) -> frozenset[str]:
    """The stems of the images that carry a watermark, from watermarked.txt; empty where there is no such file."""
    path = folder(root) / "watermarked.txt"
    return frozenset(path.read_text().split()) if path.is_file() else frozenset()


def folder(root: Path) -> Path:
    """The year's folder: `root` itself, or VOC2007 below it or its VOCdevkit, or else the latest year there."""
    if (root / "JPEGImages").is_dir():
        return root
    years = [path.parent for path in sorted([*root.glob("VOC*/JPEGImages"), *root.glob("VOCdevkit/VOC*/JPEGImages")])]
    if not years:
        raise DataError(f"{root}: no VOCdevkit/VOC2007/JPEGImages in it. {_REMEDY}")
    return next((year for year in years if year.name == "VOC2007"), years[-1])


def _present(lists: Path, name: str, parts: Sequence[str]) -> bool:
    return all((lists / f"{name}_{part}.txt").is_file() for part in parts)


def _listed(place: Path, path: Path) -> tuple[list[Path], list[Path]]:
    """The images a list marks -1, and those it marks 1."""
    marked: dict[str, list[Path]] = {"-1": [], "0": [], "1": []}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        fields = line.split()
        if len(fields) != 2 or fields[1] not in marked:
            raise DataError(f"{path}, line {number}: {line!r} is not an image's name and -1, 0 or 1. {_REMEDY}")
        image = place / "JPEGImages" / f"{fields[0]}.jpg"
        if not image.is_file():
            raise DataError(f"{image}: missing, though line {number} of {path} lists it. {_REMEDY}")
        marked[fields[1]].append(image)
    if not marked["-1"] or not marked["1"]:
        raise DataError(f"{path}: {len(marked['1'])} anomalous and {len(marked['-1'])} other images; both are needed.")
    return marked["-1"], marked["1"]
