"""The data doctor: everything about a folder of parts that would harm training or the test, found before either.

Nothing here raises for bad data and nothing changes a file: what is wrong becomes a `Finding`. Good images are judged
against each other, so limits are in units of the folder's own spread wherever that is possible.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from fcdd.check.background import plain_background
from fcdd.check.copies import duplicates, near_duplicates
from fcdd.check.diagnosis import DEFECTS, GROUPS, MASKS, SEVERITIES, TEST, TRAIN, Diagnosis, Finding
from fcdd.check.folders import locate, nested, unusable
from fcdd.check.inventory import few, gray_and_colour, ignored, quality, sizes, unreadable
from fcdd.check.looks import examine
from fcdd.check.masks import check_masks
from fcdd.check.outliers import shift, unlike
from fcdd.check.suspects import named
from fcdd.detector.judge import Judge

__all__ = ["Diagnosis", "Finding", "check"]

_EXPLAINING = frozenset({"gray-and-colour", "odd-aspect"})  # why an image is unlike the rest need not be said twice


def check(
    root: Path,
    *,
    good: Path | None = None,
    defects: Path | None = None,
    masks: Path | None = None,
    against: Judge | None = None,
    quiet: bool = False,
) -> Diagnosis:
    """Examine every image below `root`: a folder of good images; good/ with defects/ (or a folder for each type of
    defect) and perhaps masks/; or MVTec's train/good/, test/<type>/ and ground_truth/<type>/.

    `good`, `defects` and `masks` replace the folder that was found for each; `against` is a model that judges the good
    images of training.
    """
    obstacle = unusable(root, good, defects, masks)
    if obstacle:
        return Diagnosis(str(root), (obstacle,), dict.fromkeys(GROUPS, 0), {})
    folders = locate(root, good, defects, masks)
    files = folders.files()
    looks, marks, errors = examine(folders, files, quiet=quiet)
    counts = {group: sum(look.group == group for look in looks) for group in (TRAIN, TEST, DEFECTS)}
    trained = [look for look in looks if look.group == TRAIN]
    findings = [
        *nested(folders),
        *few(counts[TRAIN]),
        *unreadable(folders, errors),
        *ignored(folders),
        *duplicates(looks),
        *near_duplicates(looks),
        *check_masks(folders, files, looks, marks),
        *shift(looks),
        *gray_and_colour(looks),
        *sizes(looks),
        *quality(looks),
        *plain_background([look.path for look in trained]),
        *(named(against, trained) if against else ()),
    ]
    explained = {file for finding in findings if finding.code in _EXPLAINING for file in finding.files}
    for group in (TRAIN, TEST):
        findings += unlike([look for look in looks if look.group == group and look.name not in explained])
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    shapes = Counter(f"{look.size[1]} × {look.size[0]}" for look in looks)
    return Diagnosis(str(root), tuple(findings), {**counts, MASKS: len(marks)}, dict(shapes.most_common()))
