"""Which folder holds which group of images, and folders that are missing, mixed up or inside each other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from fcdd import images
from fcdd.check.diagnosis import DEFECTS, MASKS, TEST, TRAIN, Finding
from fcdd.folders import MASKS as MASK_FOLDERS
from fcdd.folders import classes, layout, listable

_NOT_GOOD = frozenset(
    {"defect", "defects", "defective", "bad", "ng", "nok", "anomaly", "anomalies", "anomalous", "reject", "rejects"}
    | {"rejected", "faulty", "mask", *MASK_FOLDERS}
)


@dataclass(frozen=True)
class Folders:
    """Where each group is; masks have the same path below `masks` as their image below `base`."""

    root: Path
    train: Path
    test: Path | None
    defects: tuple[Path, ...]
    base: Path
    masks: Path | None

    @property
    def places(self) -> list[Path]:
        """The folders that are there, each once."""
        return [place for place in (self.train, self.test, *self.defects, self.masks) if place]

    def name(self, path: Path) -> str:
        """How a file or folder is called in findings: by its path below the root, where it is there."""
        return (path.relative_to(self.root) if path.is_relative_to(self.root) else path).as_posix()

    def files(self) -> dict[str, list[Path]]:
        """Files of each group, each file in one group only; where folders overlap, the narrower meaning wins."""
        places = {MASKS: [self.masks], DEFECTS: self.defects, TEST: [self.test], TRAIN: [self.train]}
        found: dict[str, list[Path]] = {}
        taken: set[str] = set()  # not by the links' targets: one file linked into two groups is a duplicate
        for group, inside in places.items():
            listed = {os.path.abspath(path): path for place in inside if place for path in images.find(place)}
            found[group] = [path for full, path in listed.items() if full not in taken]
            taken |= listed.keys()
        return found


def locate(root: Path, good: Path | None, defects: Path | None, masks: Path | None) -> Folders:
    """The groups' folders below `root` by the names in use; those given take precedence."""
    found = layout(root)
    kinds = (defects,) if defects else found.defects
    test = None if found.good == found.train else found.good
    return Folders(
        root,
        good or found.train,
        test,
        tuple(kind for kind in kinds if kind != good),
        defects or found.base,
        masks or found.masks,
    )


def unusable(root: Path, good: Path | None, defects: Path | None, masks: Path | None) -> Finding | None:
    """What makes it pointless to look further: folders that cannot be listed, or several data sets in one."""
    closed = tuple(str(place) for place in (root, good, defects, masks) if place and not listable(place))
    if closed:
        return Finding("error", "missing-folder", closed, "No such folder, or no right to read it.", "Check the path.")
    several = [] if good else classes(root)
    if several:
        message, advice = "Each of these folders is a data set of its own.", f"Check one at a time: {several[0]}."
        return Finding("error", "several-classes", tuple(place.name for place in several), message, advice)
    return None


def nested(folders: Folders) -> Iterator[Finding]:
    """Folders of one group inside another's, and folders among the good images that are named like defects."""
    inside = {
        max(pair, key=lambda place: len(place.resolve().parts))
        for pair in combinations(folders.places, 2)
        if _overlap(*pair)
    }
    inside |= {Path(at, name) for at, names, _ in os.walk(folders.train) for name in names if name.lower() in _NOT_GOOD}
    if inside:
        files = tuple(sorted({folders.name(place) for place in inside}))
        message = "A folder lies inside another group's folder, so its images would count with the wrong label."
        yield Finding("error", "nested-folders", files, message, "Keep good, defects and masks beside each other.")


def _overlap(one: Path, other: Path) -> bool:
    one, other = one.resolve(), other.resolve()
    return one.is_relative_to(other) or other.is_relative_to(one)
