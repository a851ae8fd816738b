"""PASCAL VOC for the paper's Clever Hans experiment: horses, some watermarked, are the anomalies.

`voc` has ImageNet's images as nominal, as the paper does; `voc-others` has VOC's own images without a horse.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from fcdd.data import DATASETS, SMALL_SMOKE, Dataset, Split, imagenet
from fcdd.data.sources import Images
from fcdd.errors import DataError

NOMINAL = 5000  # ImageNet images in training, and as many in the test: about as many as VOC2007 has
MARKED_LIST = "watermarked.txt"  # stems of images with a photographer's mark, a line each, beside JPEGImages
_REMEDY = "Unpack VOCtrainval_06-Nov-2007.tar and VOCtest_06-Nov-2007.tar from http://host.robots.ox.ac.uk/pascal/VOC/."
_FILES = tuple(
    f"{home}{part}"
    for home in ("", "VOC*/", "VOCdevkit/VOC*/")
    for part in ("ImageSets/Main/{normal}_*", "JPEGImages/*", MARKED_LIST)
)


class Lists(NamedTuple):
    """The files of VOC's training and test lists, without those marked as difficult."""

    parts: tuple[str, str]  # names of the two lists
    train_others: list[Path]
    train_objects: list[Path]
    test_others: list[Path]
    test_objects: list[Path]


def split(root: Path, anomalous: str = "horse", size: int = 224) -> Split:
    """The paper's problem: ImageNet's images are nominal, VOC's images of `anomalous` objects anomalous.

    Images are stretched to (3, `size`, `size`) uint8 on demand. Nominal are up to `NOMINAL` images of ImageNet's
    train folder, evenly over its classes, and as many of val in the test; `root` holds both datasets. The training
    list's objects are the labelled `anomalies`.
    """
    lists = read_lists(root, anomalous)
    try:
        nominal, good = (_evenly(imagenet.listed(root, part)) for part in ("train", "val"))
    except DataError as error:
        raise DataError(f"{error} Or run voc-others, whose nominal images are VOC's without a {anomalous}.") from None
    horses = (
        f"{len(lists.train_objects)} {anomalous} in {lists.parts[0]} and {len(lists.test_objects)} in {lists.parts[1]}"
    )
    read = f"{horses}; ImageNet, {len(nominal):,} nominal images of train and {len(good):,} of val"
    return _split(f"voc/{anomalous}", lists, nominal, good, size, f"PASCAL {folder(root).name}, {read}")


def split_others(root: Path, anomalous: str = "horse", size: int = 224) -> Split:
    """The problem within VOC: images with an `anomalous` object are anomalous, all others nominal; as in `split`."""
    lists = read_lists(root, anomalous)
    read = (
        f"{lists.parts[0]}: {len(lists.train_objects)} {anomalous} and {len(lists.train_others)} others, "
        f"{lists.parts[1]}: {len(lists.test_objects)} and {len(lists.test_others)}"
    )
    name, provenance = f"voc-others/{anomalous}", f"PASCAL {folder(root).name}, {read}"
    return _split(name, lists, lists.train_others, lists.test_others, size, provenance)


def _split(name: str, lists: Lists, nominal: list[Path], good: list[Path], size: int, provenance: str) -> Split:
    bad = lists.test_objects
    return Split(
        name=name,
        nominal=Images(nominal, size),
        test=Images(good + bad, size),
        labels=torch.tensor([0] * len(good) + [1] * len(bad)),
        kinds=["other"] * len(good) + [name.partition("/")[2]] * len(bad),
        provenance=provenance,
        anomalies=Images(lists.train_objects, size),
    )


def read_lists(root: Path, anomalous: str) -> Lists:
    """What VOC's lists of an object say: trainval and test where both are there, else train and val.

    Later years publish no labels of the test images. Images that the lists mark as difficult (0) are left out, and so
    are those that `watermarked.txt` names: they are looked at on their own; neither training nor test may hold them.
    """
    place = folder(root)
    lists = place / "ImageSets" / "Main"
    parts = next((pair for pair in (("trainval", "test"), ("train", "val")) if _complete(lists, anomalous, pair)), None)
    if parts is None:
        raise DataError(
            f"{lists}: neither {anomalous}_trainval.txt and _test.txt nor _train.txt and _val.txt. {_REMEDY}"
        )
    marked = set(watermarked(root))
    train, test = (_listed(place, lists / f"{anomalous}_{part}.txt", marked) for part in parts)
    return Lists(parts, *train, *test)


def watermarked(root: Path) -> list[Path]:
    """The images that bear a photographer's mark: those which `MARKED_LIST` names and the folder has."""
    place = folder(root)
    names = (place / MARKED_LIST).read_text().split() if (place / MARKED_LIST).is_file() else []
    return [path for name in sorted(set(names)) if (path := place / "JPEGImages" / f"{name}.jpg").is_file()]


def folder(root: Path) -> Path:
    """The year's folder: `root` itself, or VOC2007 below it or its VOCdevkit, or else the latest year there."""
    if (root / "JPEGImages").is_dir():
        return root
    years = [path.parent for path in sorted([*root.glob("VOC*/JPEGImages"), *root.glob("VOCdevkit/VOC*/JPEGImages")])]
    if not years:
        raise DataError(f"{root}: no VOCdevkit/VOC2007/JPEGImages in it. {_REMEDY}")
    return next((year for year in years if year.name == "VOC2007"), years[-1])


def _evenly(paths: list[Path]) -> list[Path]:
    """At most `NOMINAL` of `paths` at even distances, so that all classes have their share."""
    step = max(1.0, len(paths) / NOMINAL)
    return [paths[int(at * step)] for at in range(min(len(paths), NOMINAL))]


def _complete(lists: Path, name: str, parts: Sequence[str]) -> bool:
    return all((lists / f"{name}_{part}.txt").is_file() for part in parts)


def _listed(place: Path, path: Path, left_out: Collection[Path]) -> tuple[list[Path], list[Path]]:
    """The images a list marks -1, and those it marks 1, without those to be left out."""
    marked: dict[str, list[Path]] = {"-1": [], "0": [], "1": []}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        fields = line.split()
        if len(fields) != 2 or fields[1] not in marked:
            raise DataError(f"{path}, line {number}: {line!r} is not an image's name and -1, 0 or 1. {_REMEDY}")
        image = place / "JPEGImages" / f"{fields[0]}.jpg"
        if not image.is_file():
            raise DataError(f"{image}: missing, though line {number} of {path} lists it. {_REMEDY}")
        if image not in left_out:
            marked[fields[1]].append(image)
    if not marked["-1"] or not marked["1"]:
        raise DataError(f"{path}: {len(marked['1'])} anomalous and {len(marked['-1'])} other images; both are needed.")
    return marked["-1"], marked["1"]


DATASETS.register("voc")(
    Dataset(
        title="PASCAL VOC against ImageNet",
        classes=("horse",),
        read=lambda problem: split(problem.root, problem.normal, problem.size),
        files=(*_FILES, *imagenet.FILES),
        eta=0.99,
        short=30,
        smoke={**SMALL_SMOKE, "stored": 32},
        fit="stretch",
        revision=3,  # was once what voc-others is now; then with photographers' marks among the horses
    )
)
DATASETS.register("voc-others")(
    Dataset(
        title="PASCAL VOC, horses against others",
        classes=("horse",),
        read=lambda problem: split_others(problem.root, problem.normal, problem.size),
        files=_FILES,
        eta=0.99,
        short=30,
        smoke={**SMALL_SMOKE, "stored": 32},
        fit="stretch",
        revision=2,  # had photographers' marks among the horses
    )
)
