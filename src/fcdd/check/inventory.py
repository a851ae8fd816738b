"""What there is to work with: whether it is enough, readable, and all of one colour, shape and decent quality."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from fcdd.check.diagnosis import FEW, Finding, grouped, many, promise
from fcdd.check.folders import Folders
from fcdd.check.looks import Look, names
from fcdd.errors import ImageError
from fcdd.folders import FEWEST

TINY = 64  # pixels of the shorter side
POOR_JPEG = 40  # libjpeg's quality, below which blocks are visible
ASPECT = 0.05  # relative difference of width / height from the median

_UNREAD_SUFFIXES = frozenset(
    {".heic", ".heif", ".avif", ".jxl", ".jp2", ".raw", ".dng", ".cr2", ".cr3", ".nef", ".arw", ".exr", ".mp4", ".avi"}
)


def few(good: int) -> Iterator[Finding]:
    """Whether `good` usable good images are too few to train, or too few to promise much."""
    if good < FEWEST:
        message = f"{many(good, 'usable good image')}: at least {FEWEST} are needed to train."
        yield Finding("error", "too-few-good", (), message, "Add good images, in all their normal variety.")
    elif good < FEW:
        message = f"Few good images. {promise(good)}"
        yield Finding("warning", "few-good", (), message, f"Add good images: {FEW} or more, 400 to promise 1 %.")


def unreadable(folders: Folders, errors: Sequence[ImageError]) -> Iterator[Finding]:
    """Files that cannot be decoded, one finding for each reason."""
    for (reason, remedy), alike in grouped(errors, lambda error: (error.reason, error.remedy)).items():
        files = tuple(folders.name(Path(error.source)) for error in alike)
        yield Finding("error", "unreadable", files, f"Cannot be used: {reason}.", remedy)


def ignored(folders: Folders) -> Iterator[Finding]:
    """Files of image and video formats that are not read."""
    found = {file for place in folders.places for file in place.rglob("*") if file.suffix.lower() in _UNREAD_SUFFIXES}
    if found:
        files = tuple(sorted({folders.name(file) for file in found}))
        message = f"{many(len(files), 'file')} of a format that is not read: left out."
        yield Finding("warning", "ignored-files", files, message, "Convert them to PNG.")


def gray_and_colour(looks: Sequence[Look]) -> Iterator[Finding]:
    """Gray images among coloured ones or the other way round; the fewer are named."""
    gray, colour = ([look for look in looks if look.gray == kind] for kind in (True, False))
    if gray and colour:
        fewer, kind = (gray, "gray") if len(gray) <= len(colour) else (colour, "coloured")
        message = f"Gray and coloured images are mixed: {len(fewer)} of {len(looks)} {kind}."
        advice = "Take all images with one camera setting: the difference itself looks like an anomaly."
        yield Finding("warning", "gray-and-colour", names(fewer), message, advice)


def sizes(looks: Sequence[Look]) -> Iterator[Finding]:
    """Images of another aspect ratio than the median's; of the others, those of another size than most."""
    if not looks:
        return
    ratios = np.array([look.size[1] / look.size[0] for look in looks])
    off = np.abs(ratios / np.median(ratios) - 1) > ASPECT
    distorted = [look for look, odd in zip(looks, off, strict=True) if odd]
    if distorted:
        message = f"{len(distorted)} of {len(looks)} images have another aspect ratio, width / height, than the others."
        advice = "Crop them alike: all are resized to the usual aspect ratio of the good images, which distorts these."
        yield Finding("warning", "odd-aspect", names(distorted), message, advice)
    usual = Counter(look.size for look in looks).most_common(1)[0][0]
    scaled = [look for look, odd in zip(looks, off, strict=True) if look.size != usual and not odd]
    if scaled:
        message = f"{len(scaled)} of {len(looks)} images are not {usual[1]} × {usual[0]} pixels like most."
        advice = "All are resized, so this may be well; check that the parts appear equally large and sharp."
        yield Finding("note", "odd-size", names(scaled), message, advice)


def quality(looks: Sequence[Look]) -> Iterator[Finding]:
    """Images that are too small or too strongly compressed, or named as another format than they are."""
    tiny = [look for look in looks if min(look.size) < TINY]
    if tiny:
        message = f"{many(len(tiny), 'image')} with a side below {TINY} pixels."
        advice = "Take larger images: defects need some pixels to be seen."
        yield Finding("warning", "tiny", names(tiny), message, advice)
    poor = [look for look in looks if look.jpeg_quality < POOR_JPEG]
    if poor:
        worst = min(look.jpeg_quality for look in poor)
        message = f"{many(len(poor), 'image')} strongly compressed, JPEG quality below {POOR_JPEG} (worst {worst})."
        advice = "Save as PNG, or as JPEG of quality 90 and more: blocks hide defects and look like some."
        yield Finding("warning", "compressed", names(poor), message, advice)
    misnamed = grouped((look for look in looks if look.content), lambda look: look.content)
    for content, alike in misnamed.items():
        message = f"The content is {content}, the file name says otherwise."
        advice = "It can be read as it is; rename it so that other programs can, too."
        yield Finding("note", "wrong-suffix", names(alike), message, advice)
