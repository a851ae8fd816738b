"""A user's own folders: good parts, perhaps defects, perhaps masks; checked as a whole before anything starts.

Which folder names and which mask names are in use is known here alone.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from fcdd import images
from fcdd.errors import DataError, ImageError
from fcdd.reading import problems

FEWEST = 10  # good images that a training needs
MASKS = ("masks", "ground_truth")  # folders of masks
_LAYOUTS = (
    "Expected good/ and defects/ (and, if there are masks, masks/), or MVTec's test/good/, test/<type>/ and "
    "ground_truth/<type>/, or a folder with good/ and one folder for each type of defect."
)


class Layout(NamedTuple):
    """Which folder below a data set's folder holds what, told by the folders' names alone."""

    train: Path  # good images to train on; the data set's folder itself where it has no such folder
    good: Path | None  # good images beside the defects, to test on; the same as `train` where there is no train/
    defects: tuple[Path, ...]  # one folder, or one for each type of defect
    base: Path  # a mask has the same subfolder below `masks` as its image below `base`
    masks: Path | None


class Item(NamedTuple):
    """One image; label 0 is nominal, 1 anomalous."""

    path: Path
    label: int
    kind: str  # "good", the subfolder of a defect, or "defect"
    mask: Path | None


class Folder(NamedTuple):
    """Training images; `kinds` and `masks` go with `defects`; `bad` are the files that were skipped."""

    good: list[Path]
    defects: list[Path]
    kinds: list[str]
    masks: list[Path | None]
    bad: list[ImageError]


class Labelled(NamedTuple):
    """Test images; `labels`, `kinds` and `mask_paths` go with `paths`."""

    paths: list[Path]
    labels: list[int]
    kinds: list[str]
    mask_paths: list[Path | None]


class Unlabelled(NamedTuple):
    """Images of which nothing is known, in the same form as `Labelled`."""

    paths: list[Path]
    labels: list[None]
    kinds: list[str]
    mask_paths: list[None]


def read_folder(
    good: Path, defects: Path | None = None, masks: Path | None = None, *, skip_bad: bool = False
) -> Folder:
    """Training images of `good`, labelled anomalies of `defects`, and the anomalies' masks.

    A subfolder of `defects` names the type of the defects in it. A mask has its image's name, with any suffix and
    perhaps `_mask` after the stem, in the same subfolder of `masks` or in `masks` itself. A defect may have none.

    Raises:
        DataError: a folder missing or inside another, fewer than 10 good images, masks that fit no image or have
            another size, or files that cannot be read: all of them in one message, unless `skip_bad`.
    """
    _apart([place for place in (good, defects, masks) if place is not None])
    items = _good(good)
    if defects is not None:
        items += _defects(images.find(defects), defects, masks)
    usable, bad = _checked(items, skip_bad)
    nominal = [item.path for item in usable if item.label == 0]
    anomalous = [item for item in usable if item.label == 1]
    if len(nominal) < FEWEST:
        raise DataError(f"{good}: {len(nominal)} usable good images, at least {FEWEST} are needed. Add good images.")
    if defects is not None and not anomalous:
        raise DataError(f"{defects}: no usable images in it. Leave defects out, or give the folder that holds them.")
    _, _, kinds, paired = _columns(anomalous)
    return Folder(nominal, [item.path for item in anomalous], kinds, paired, bad)


def read_test(root: Path, *, skip_bad: bool = False) -> Labelled:
    """Test images with labels, kinds and masks from any of three layouts: good/ with defects/ and perhaps masks/;
    MVTec's class folder; or good/ with a folder for each type of defect, their masks in ground_truth/ in or beside it.

    Raises:
        DataError: no such layout, masks that fit no image or have another size, or, unless `skip_bad` leaves them
            out, files that cannot be read.
    """
    place = layout(root)
    if place.good is None:
        raise DataError(f"{root}: no good/ in it. {_LAYOUTS}")
    if not place.defects:
        raise DataError(f"{root}: no folder of defects beside good/. {_LAYOUTS}")
    anomalies = [path for folder in place.defects for path in images.find(folder)]
    usable, _ = _checked(_good(place.good) + _defects(anomalies, place.base, place.masks), skip_bad)
    if not usable:
        raise DataError(f"{root}: no usable images in it. {_LAYOUTS}")
    return _columns(usable)


def read_labelled_or_not(root: Path, *, skip_bad: bool = False) -> Labelled | Unlabelled:
    """Test images with what is known of them: as `read_test` where the folders' names tell, else all images below."""
    place = layout(root)
    if place.good is not None and place.defects:
        return read_test(root, skip_bad=skip_bad)
    paths, _ = usable(root, skip_bad)
    return Unlabelled(paths, [None] * len(paths), [""] * len(paths), [None] * len(paths))


def usable(inputs: Path, skip_bad: bool) -> tuple[list[Path], list[str]]:
    """The images of a folder, or the one image given, that decode; and what is wrong with the others."""
    paths = images.find(inputs) if inputs.is_dir() else [inputs]
    bad = problems(paths)
    if bad and not skip_bad:
        listed = "\n".join(str(error) for error in bad)
        raise DataError(
            f"{len(bad)} of {len(paths)} files cannot be used. Repair or remove them, or --skip-bad:\n{listed}"
        )
    unfit = {error.source for error in bad}
    usable = [path for path in paths if str(path) not in unfit]
    if not usable:
        raise DataError(f"{inputs}: no usable images in it")
    return usable, [str(error) for error in bad]


def layout(root: Path) -> Layout:
    """Where the images of the data set in `root` lie: a folder of good images; good/ with defects/ or with a folder for
    each type of defect; or MVTec's train/good/ and test/<type>/. Folders that are not there are left out."""
    in_test = is_folder(root / "test" / "good") or (is_folder(root / "test") and not is_folder(root / "good"))
    base = root / "test" if in_test else root
    train = _first(root / "train" / "good", root / "train", root / "good") or root
    good = _first(base / "good")
    masks = [place / name for place in dict.fromkeys((base, root)) for name in MASKS]
    if is_folder(base / "defects"):
        return Layout(train, good, (base / "defects",), base / "defects", _first(*masks))
    if good is not None:
        masks.append(base.parent / "ground_truth")  # `root` may itself be MVTec's test/
    kinds = [place for place in subfolders(base) if place.name not in ("train", "test", "good", *MASKS)]
    return Layout(train, good, tuple(kinds) if in_test or good else (), base, _first(*masks))


def classes(root: Path) -> list[Path]:
    """The subfolders of `root` that are data sets, where `root` is not one itself."""
    if any(is_folder(root / known) for known in ("train", "test", "good", "defects")):
        return []
    return [place for place in subfolders(root) if _first(place / "train" / "good", place / "good")]


def subfolders(folder: Path) -> list[Path]:
    """The folders in `folder` that are not hidden, by name; none where it may not be listed."""
    if not listable(folder):
        return []
    return sorted(place for place in folder.iterdir() if is_folder(place) and not place.name.startswith("."))


def is_folder(place: Path) -> bool:
    """Whether `place` is a folder; False where a folder above it may not be entered."""
    return os.path.isdir(place)  # Path.is_dir raises there before Python 3.14


def listable(folder: Path) -> bool:
    """Whether `folder` is a folder whose content may be read."""
    return is_folder(folder) and os.access(folder, os.R_OK | os.X_OK)


class Masks:
    """Mask files, to be found by the name of their image: the image's stem, or that and `_mask`, with any suffix."""

    def __init__(self, files: Iterable[Path], root: Path) -> None:
        """`files` lie in the folder `root` or in its subfolders."""
        self.files = list(files)
        self._known: dict[tuple[Path, str], list[Path]] = {}
        for mask in self.files:
            self._known.setdefault((mask.relative_to(root).parent, mask.stem), []).append(mask)

    def of(self, path: Path, subfolder: Path) -> list[Path]:
        """The masks that fit the image `path`: those in `subfolder` of the masks, else those in no subfolder."""
        keys = [(place, stem) for place in (subfolder, Path()) for stem in (path.stem, f"{path.stem}_mask")]
        return next((self._known[key] for key in keys if key in self._known), [])


def _first(*places: Path) -> Path | None:
    return next((place for place in places if is_folder(place)), None)


def _good(folder: Path) -> list[Item]:
    return [Item(path, 0, "good", None) for path in images.find(folder)]


def _defects(paths: list[Path], base: Path, masks: Path | None) -> list[Item]:
    paired = _pair(paths, base, masks) if masks else [None] * len(paths)
    return [Item(path, 1, _kind(path, base), mask) for path, mask in zip(paths, paired, strict=True)]


def _columns(items: list[Item]) -> Labelled:
    return Labelled(
        [item.path for item in items],
        [item.label for item in items],
        [item.kind for item in items],
        [item.mask for item in items],
    )


def _checked(items: list[Item], skip_bad: bool) -> tuple[list[Item], list[ImageError]]:
    """The items whose files decode, and the errors of the others; masks must have the size of their image."""
    bad = problems([item.path for item in items])
    bad += problems([item.mask for item in items if item.mask], masks=True)
    if bad and not skip_bad:
        listed = "\n".join(str(error) for error in bad)
        raise DataError(f"{len(bad)} files cannot be used. Repair or remove them, or skip bad files:\n{listed}")
    unfit = {error.source for error in bad}
    usable = [item for item in items if not unfit & {str(item.path), str(item.mask)}]
    refuse_other_sizes(usable)
    return usable, bad


def refuse_other_sizes(items: Sequence[Item]) -> None:
    """DataError that names every mask which has not the size of its image."""
    sizes = [(item, images.size(item.path), images.size(item.mask)) for item in items if item.mask]
    wrong = [f"{i.mask}: {m[1]} × {m[0]}, its image {i.path}: {p[1]} × {p[0]}" for i, p, m in sizes if p != m]
    if wrong:
        raise DataError("Masks must have the size of their image:\n" + "\n".join(wrong))


def _apart(places: Sequence[Path]) -> None:
    """No folder may hold another, or images would count twice, once with the wrong label."""
    for one, other in combinations([place.resolve() for place in places], 2):
        if one == other or one in other.parents or other in one.parents:
            raise DataError(f"{one} and {other}: one folder lies inside the other. Keep good, defects and masks apart.")


def _kind(path: Path, base: Path) -> str:
    parts = path.relative_to(base).parts
    return parts[0] if len(parts) > 1 else "defect"


def _pair(paths: Sequence[Path], base: Path, masks: Path) -> list[Path | None]:
    """Each image's mask, or None; every mask must fit exactly one image."""
    known = Masks(images.find(masks), masks)
    paired: list[Path | None] = []
    for path in paths:
        fitting = known.of(path, path.relative_to(base).parent)
        if len(fitting) > 1:
            raise DataError(f"{path}: two masks fit it, {fitting[0]} and {fitting[1]}. Keep one.")
        paired.append(fitting[0] if fitting else None)
    uses = Counter(mask for mask in paired if mask)
    shared = [str(mask) for mask, times in uses.items() if times > 1]
    if shared:
        raise DataError(f"{shared[0]}: fits several images of the same name. Sort masks into the images' subfolders.")
    left = [str(mask) for mask in known.files if mask not in uses]
    if left:
        raise DataError(f"{len(left)} masks fit no image. Name each like its image, or remove it:\n" + "\n".join(left))
    return paired
