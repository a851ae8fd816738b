"""Masks against the images they belong to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from fcdd.check.diagnosis import DEFECTS, MASKS, TEST, TRAIN, Finding, Severity
from fcdd.check.folders import Folders
from fcdd.check.looks import Look, Mark
from fcdd.folders import Masks

LARGE_MASK = 0.5  # share of the image

_CASES: dict[str, tuple[Severity, str, str]] = {
    "mask-without-image": ("error", "Mask of no image.", "Name it like its image, or remove it."),
    "mask-ambiguous": (
        "error",
        "Several masks fit one image, or one mask fits several.",
        "Keep one for each image, in the same subfolder as the image.",
    ),
    "mask-size": ("error", "Mask of another size than its image.", "Export it at its image's size."),
    "mask-on-good": (
        "error",
        "A good image has a mask with a defect marked in it.",
        "If the part is defective, move its image to the defects; else remove the mask.",
    ),
    "empty-mask-on-good": ("warning", "A good image has an empty mask.", "Remove it: only defects have masks."),
    "mask-empty": (
        "warning",
        "Empty mask: no pixel is marked.",
        "Mark the defect, or remove the mask; if there is no defect, the part is good.",
    ),
    "mask-large": (
        "warning",
        f"Mask covers more than {100 * LARGE_MASK:.0f} % of its image.",
        "Look at it: are background and defect exchanged?",
    ),
    "defect-without-mask": (
        "note",
        "Defects without a mask.",
        "Add masks if you want to measure how well defects are located; nothing else needs them.",
    ),
}


def check_masks(
    folders: Folders, files: dict[str, list[Path]], looks: Sequence[Look], marks: Sequence[Mark]
) -> Iterator[Finding]:
    """What is wrong with the masks, a finding for each kind of fault.

    Pairs are made by the paths in `files`, so that unreadable files have their partners; `looks` and `marks` are
    the readable images and masks.
    """
    known = Masks(files[MASKS], folders.masks or folders.root)
    pairs = {path: known.of(path, path.relative_to(folders.base).parent) for path in files[DEFECTS]}
    uses = Counter(mask for fitting in pairs.values() for mask in fitting)
    fit_good = {mask for path in files[TRAIN] + files[TEST] for mask in known.of(path, Path("good"))}
    nominal = fit_good - uses.keys()
    blank = {mark.path for mark in marks if mark.share == 0}
    image_sizes, mask_sizes = {look.path: look.size for look in looks}, {mark.path: mark.size for mark in marks}
    found = {
        "mask-without-image": set(files[MASKS]) - nominal - uses.keys(),
        "mask-ambiguous": {mask for fit in pairs.values() for mask in fit if len(fit) > 1 or uses[mask] > 1},
        "mask-size": {
            mask
            for path, fitting in pairs.items()
            for mask in fitting
            if path in image_sizes and mask in mask_sizes and mask_sizes[mask] != image_sizes[path]
        },
        "mask-on-good": nominal - blank,
        "empty-mask-on-good": nominal & blank,
        "mask-empty": blank & uses.keys(),
        "mask-large": {mark.path for mark in marks if mark.share > LARGE_MASK},
        "defect-without-mask": {path for path, fitting in pairs.items() if not fitting},
    }
    for code, paths in found.items():
        if paths:
            severity, message, advice = _CASES[code]
            yield Finding(severity, code, tuple(folders.name(path) for path in sorted(paths)), message, advice)
