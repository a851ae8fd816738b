"""ImageNet, one class against the paper's other 29, and ImageNet-22k for Outlier Exposure; folders of WordNet ids."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

import torch

from fcdd import images
from fcdd.data import CORPORA, DATASETS, SMALL_SMOKE, Corpus, Dataset, Split
from fcdd.data.sources import Images
from fcdd.errors import DataError

IMAGENET30 = {
    "acorn": "n12267677",
    "airliner": "n02690373",
    "ambulance": "n02701002",
    "American alligator": "n01698640",
    "banjo": "n02787622",
    "barn": "n02793495",
    "bikini": "n02837789",
    "digital clock": "n03196217",
    "dragonfly": "n02268443",
    "dumbbell": "n03255030",
    "forklift": "n03384352",
    "goblet": "n03443371",
    "grand piano": "n03452741",
    "hotdog": "n07697537",
    "hourglass": "n03544143",
    "manhole cover": "n03717622",
    "mosque": "n03788195",
    "nail": "n03804744",
    "parking meter": "n03891332",
    "pillow": "n03938244",
    "revolver": "n04086273",
    "dial telephone": "n03187595",
    "schooner": "n04147183",
    "snowmobile": "n04252077",
    "soccer ball": "n04254680",
    "stingray": "n01498041",
    "strawberry": "n07745940",
    "tank": "n04389033",
    "toaster": "n04442312",
    "volcano": "n09472597",
}
# As the paper's table has it, where its figures have our name.
_SYNONYMS = {"rotary dial telephone": IMAGENET30["dial telephone"]}
_NAMES = {wnid: name for name, wnid in IMAGENET30.items()}
# Of class folders the names count: to list 14 million files takes minutes.
FILES = ("train/*", "val/*", "imagenet*/train/*", "imagenet*/val/*")
_REMEDY = (
    "Get ILSVRC2012_img_train.tar and ILSVRC2012_img_val.tar from https://www.image-net.org "
    "and sort the images into train/<WordNet id>/ and val/<WordNet id>/."
)


def split(root: Path, normal: str, classes: Sequence[str] | None = None, size: int = 256) -> Split:
    """`normal` against the other `classes`: training images of `normal`, validation images of all `classes`.

    Classes are WordNet ids or, for the paper's 30, names. Without `classes`: those of the paper's 30 that are
    present, if at least half are; otherwise every class found in both train and val, as with Imagenette.
    Images are decoded on demand and stretched to (3, `size`, `size`) uint8. `root` holds train and val, or a folder
    imagenet or imagenette that does.
    """
    root = home(root)
    train, val = _class_folders(root / "train"), _class_folders(root / "val")
    nominal = wnid(normal)
    chosen, which = _choose(train, val) if classes is None else ([wnid(name) for name in classes], "chosen")
    for part, missing in (("train", {nominal} - train.keys()), ("val", {nominal, *chosen} - val.keys())):
        if missing:
            raise DataError(f"{root / part}: no class folder {', '.join(sorted(missing))}. {_REMEDY}")
    chosen = sorted({nominal, *chosen})
    trained = _images(train[nominal])
    tested = [(path, one) for one in chosen for path in _images(val[one])]
    return Split(
        name=f"imagenet/{_NAMES.get(nominal, nominal)}",
        nominal=Images(trained, size),
        test=Images([path for path, _ in tested], size),
        labels=torch.tensor([int(one != nominal) for _, one in tested]),
        kinds=[_NAMES.get(one, one) for _, one in tested],
        provenance=f"ImageNet, {len(chosen)} classes ({which}), {len(trained):,} training images of the class, "
        f"{len(tested):,} validation images",
    )


def exposure_files(root: Path, exclude: Collection[str] = ()) -> tuple[list[Path], str]:
    """Outlier Exposure: every image of ImageNet-22k's class folders that may serve, and the provenance.

    `root` holds the folders (or `imagenet22k` or `fall11_whole_extracted`, which holds them). The paper leaves out
    the 1,000 classes of ImageNet-1k: `exclude` gives their ids, and those of the class folders of an ImageNet-1k
    `train` folder beside it (train, imagenet/train, imagenet1k/train) are added, as are the paper's 30 test classes.
    The provenance says how many classes that makes, so fewer than 1,000 are seen.
    """
    inner = [root / "imagenet22k" / "fall11_whole_extracted", root / "imagenet22k", root / "fall11_whole_extracted"]
    place = next((folder for folder in inner if folder.is_dir()), root)
    names = ("train", "imagenet/train", "imagenet1k/train")
    beside = [above / name for above in (place.parent, root, root.parent) for name in names]
    known = next((found for folder in beside if (found := _found(folder))), {})
    left_out = {*exclude, *known, *IMAGENET30.values()}
    which = (
        f"{len(left_out):,} classes given or found in ImageNet-1k" if exclude or known else "paper's 30 classes only"
    )
    return _exposure(place, left_out, "ImageNet-22k", which)


def train_files(root: Path, exclude: Collection[str] = ()) -> tuple[list[Path], str]:
    """Outlier Exposure: the training images of every class but the paper's 30 and `exclude`, and the provenance."""
    which = "paper's 30 classes" + (f" and {len(exclude):,} given classes" if exclude else "")
    return _exposure(home(root) / "train", {*exclude, *IMAGENET30.values()}, "ImageNet train", which)


def wnid(name: str) -> str:
    """The WordNet id of one of the paper's 30 classes by its name, any case; an id stays what it is."""
    if re.fullmatch(r"n\d{8}", name):
        return name
    known = {**{one.lower(): number for one, number in IMAGENET30.items()}, **_SYNONYMS}
    text = name.strip().lower().replace("_", " ")
    if text not in known:
        raise DataError(f"{name!r} is neither a WordNet id nor one of the paper's classes: {', '.join(IMAGENET30)}.")
    return known[text]


def home(root: Path) -> Path:
    """The folder that holds train and val: `root`, or imagenet or imagenette in it."""
    return next((place for place in (root, root / "imagenet", root / "imagenette") if (place / "train").is_dir()), root)


def listed(root: Path, part: str) -> list[Path]:
    """All images of "train" or "val", class by class.

    Raises:
        DataError: there is no such folder, or no class folder in it.
    """
    return [path for folder in _class_folders(home(root) / part).values() for path in images.find(folder)]


def _choose(train: dict[str, Path], val: dict[str, Path]) -> tuple[list[str], str]:
    """The classes to test on, and how they were chosen."""
    paper = [one for one in IMAGENET30.values() if one in val]
    if 2 * len(paper) >= len(IMAGENET30):
        return paper, f"{len(paper)} of the paper's 30"
    return sorted(train.keys() & val.keys()), f"all in train and val, {len(paper)} of the paper's 30 among them"


def _found(folder: Path) -> dict[str, Path]:
    """The class folders by WordNet id; none where there is no such folder."""
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    return {path.name: path for path in paths if path.is_dir() and re.fullmatch(r"n\d{8}", path.name)}


def _class_folders(folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder. {_REMEDY}")
    found = _found(folder)
    if not found:
        raise DataError(f"{folder}: no class folders named by WordNet ids, such as n12267677, in it. {_REMEDY}")
    return found


def _images(folder: Path) -> list[Path]:
    found = images.find(folder)
    if not found:
        raise DataError(f"{folder}: no images in it. {_REMEDY}")
    return found


def _exposure(place: Path, left_out: Collection[str], name: str, which: str) -> tuple[list[Path], str]:
    kept = [folder for one, folder in _class_folders(place).items() if one not in left_out]
    paths = [path for folder in kept for path in images.find(folder)]
    if not paths:
        raise DataError(f"{place}: no images left without the {which}.")
    return paths, f"{name}, {len(paths):,} images of {len(kept):,} classes, without the {which}"


def _present(root: Path) -> list[str]:
    """The paper's 30 by name where at least half of them are there, else the folders found, as with Imagenette."""
    found = sorted(_found(home(root) / "train"))
    paper = [name for name, one in IMAGENET30.items() if one in found]
    return paper if 2 * len(paper) >= len(IMAGENET30) else found


DATASETS.register("imagenet")(
    Dataset(
        title="ImageNet-30",
        classes=tuple(IMAGENET30),
        read=lambda problem: split(problem.root, problem.normal, size=problem.size),
        files=FILES,
        eta=0.97,
        short=10,
        smoke=SMALL_SMOKE,
        fit="stretch",
        found=_present,
        meant=wnid,
        left_out=lambda normal: [wnid(normal)],
        revision=2,  # images were cropped to a square once
    )
)
CORPORA.register("imagenet")(Corpus(read=train_files, files=FILES))
CORPORA.register("imagenet22k")(
    Corpus(
        read=exposure_files,
        files=("imagenet22k/*", "imagenet22k/fall11_whole_extracted/*", "fall11_whole_extracted/*"),
    )
)
