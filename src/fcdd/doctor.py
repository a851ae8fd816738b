"""The data doctor: everything about a folder of parts that would harm training or the test, found before either.

Nothing here raises for bad data and nothing changes a file: what is wrong becomes a `Finding`. Good images are judged
against each other, so the limits below are in units of the folder's own spread wherever that is possible.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fcdd import images
from fcdd.errors import ImageError
from fcdd.progress import bar

Severity = Literal["error", "warning", "note"]
Floats = NDArray[np.float32]
T = TypeVar("T")

TRAIN, TEST, DEFECTS, MASKS = "train good", "test good", "defects", "masks"
FEWEST, FEW = 10, 50  # good images: below the first nothing can be trained, below the second little be promised
HELD_OUT = 4  # one in so many good images is held out for calibration
TINY = 64  # pixels of the shorter side
POOR_JPEG = 40  # libjpeg's quality, below which blocks are visible
ASPECT = 0.05  # relative difference of width / height from the median
LARGE_MASK = 0.5  # share of the image
NEAR, NEIGHBOURS = (0.95, 0.99), 21  # correlation of what is particular to two images
UNLIKE = 7.0  # robust standard deviations
FEWEST_FOR_SPREAD = 20  # images, for a median absolute deviation to be trusted
CROWD = 0.1  # share of a group beyond which "outliers" are a second population
SHIFT, SHIFT_LEVELS = 2.0, 3.0  # lighting: robust standard deviations, and gray levels
LISTED = 10  # files of a finding, and findings of a kind, in the text

_SIDE, _THUMB = 256, 64
# Words for an unusually low and high value, and what is added to the variance so that folders of almost equal images
# raise no alarm: brightness, contrast, ln sharpness, R − G, B − G, ln distance to the median thumbnail.
_TRAITS = (
    ("darker", "brighter"),
    ("less contrast", "more contrast"),
    ("blurred", "sharper"),
    ("greener", "redder"),
    ("yellower", "bluer"),
    ("", "another picture"),
)
_FLOORS = np.array([1.0, 1.0, 0.05, 1.0, 1.0, 0.05], dtype=np.float32)
_NOT_GOOD = frozenset(
    {"defect", "defects", "defective", "bad", "ng", "nok", "anomaly", "anomalies", "anomalous", "reject", "rejects"}
    | {"rejected", "faulty", "mask", "masks", "ground_truth"}
)
_UNREAD_SUFFIXES = frozenset(
    {".heic", ".heif", ".avif", ".jxl", ".jp2", ".raw", ".dng", ".cr2", ".cr3", ".nef", ".arw", ".exr", ".mp4", ".avi"}
)
_CONTENTS = {
    b"\x89PNG": ("PNG", (".png",)),
    b"\xff\xd8": ("JPEG", (".jpg", ".jpeg")),
    b"BM": ("BMP", (".bmp",)),
    b"II*\0": ("TIFF", (".tif", ".tiff")),
    b"MM\0*": ("TIFF", (".tif", ".tiff")),
    b"RIFF": ("WebP", (".webp",)),
    b"GIF8": ("GIF", (".gif",)),
    b"P": ("PNM", (".pgm", ".ppm", ".pnm")),
}
_EXPLAINING = frozenset({"gray-and-colour", "odd-aspect"})  # why an image is unlike the rest need not be said twice
_STANDARD_TABLE = 3685  # sum of the JPEG standard's luminance quantisation table (Annex K)


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or worth knowing; `files` are relative to the folder that was checked."""

    severity: Severity
    code: str
    files: tuple[str, ...]
    message: str
    advice: str


@dataclass(frozen=True)
class Diagnosis:
    """All findings, errors first; `counts` are usable files in each group, `sizes` images of each W × H, most first."""

    root: str
    findings: tuple[Finding, ...]
    counts: dict[str, int]
    sizes: dict[str, int]

    @property
    def ok(self) -> bool:
        """Whether training can start: no finding is an error."""
        return not any(finding.severity == "error" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self)}

    def text(self) -> str:
        """For the terminal: what there is, what was found, errors first, and what it means."""
        groups = ", ".join(f"{count} {group}" for group, count in self.counts.items() if count) or "no usable images"
        sizes = [f"{size} ({count})" for size, count in self.sizes.items()]
        more = f" and {len(sizes) - 3} other sizes" if len(sizes) > 3 else ""
        lines = [f"{self.root}: {groups}.", *([f"Sizes: {', '.join(sizes[:3])}{more}."] if sizes else [])]
        lines += [_promise(self.counts[TRAIN])] if self.counts[TRAIN] >= FEW else []
        for severity in ("error", "warning", "note"):
            found = [finding for finding in self.findings if finding.severity == severity]
            lines += ["", f"{_many(len(found), severity)}:"] if found else []
            kinds: defaultdict[tuple[str, str], list[Finding]] = defaultdict(list)
            for finding in found:
                kinds[finding.code, finding.advice].append(finding)
            for (_, advice), alike in kinds.items():
                lines += [line for finding in alike[:LISTED] for line in _lines(finding)]
                lines += [f"  and {len(alike) - LISTED} more like this."] if len(alike) > LISTED else []
                lines += [f"    → {advice}"]
        return "\n".join([*lines, "", "No errors: training can start." if self.ok else "Remedy the errors first."])


def _lines(finding: Finding) -> list[str]:
    rest = len(finding.files) - LISTED
    listed = [f"      {file}" for file in finding.files[:LISTED]]
    return [f"  {finding.message}", *listed, *([f"      and {rest} more"] if rest > 0 else [])]


def _promise(good: int) -> str:
    held = good // HELD_OUT
    return (
        f"Of {_many(good, 'good image')} a quarter, {held}, is held out for calibration: the lowest false-reject rate "
        f"it can promise is 1 / {held + 1} = {100 / (held + 1):.1f} %."
    )


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}" + ("" if count == 1 else "s")


def check(
    root: Path, *, good: Path | None = None, defects: Path | None = None, masks: Path | None = None, quiet: bool = False
) -> Diagnosis:
    """Examine every image below `root`: a folder of good images; good/ with defects/ (or a folder for each type of
    defect) and perhaps masks/; or MVTec's train/good/, test/<type>/ and ground_truth/<type>/.

    `good`, `defects` and `masks` replace the folder that was found for each.
    """
    name = partial(_name, root)
    unusable = _unusable([place for place in (root, good, defects, masks) if place], _classes(root) if not good else [])
    if unusable:
        return Diagnosis(str(root), (unusable,), dict.fromkeys((TRAIN, TEST, DEFECTS, MASKS), 0), {})
    folders = _folders(root, good, defects, masks)
    paths = _paths(folders)
    jobs = [(group, path) for group, found in paths.items() for path in found]
    with bar("checking", len(jobs), quiet=quiet) as progress:
        seen = _threaded(partial(_look, name), jobs, progress.advance)
    looks = [look for look in seen if isinstance(look, Look)]
    marks = {mark.path: mark for mark in seen if isinstance(mark, Mark)}
    counts = {group: sum(look.group == group for look in looks) for group in (TRAIN, TEST, DEFECTS)}
    findings = [
        *_nested(folders, name),
        *_few(counts[TRAIN]),
        *_unreadable([error for error in seen if isinstance(error, ImageError)], name),
        *_ignored(folders, name),
        *_duplicates(looks),
        *_near_duplicates(looks),
        *_masks(folders, paths, marks, {look.path: look.size for look in looks}, name),
        *_shift(looks),
        *_gray_and_colour(looks),
        *_sizes(looks),
        *_quality(looks),
    ]
    explained = {file for finding in findings if finding.code in _EXPLAINING for file in finding.files}
    for group in (TRAIN, TEST):
        findings += _unlike([look for look in looks if look.group == group and look.name not in explained])
    findings.sort(key=lambda finding: ("error", "warning", "note").index(finding.severity))
    sizes = Counter(f"{look.size[1]} × {look.size[0]}" for look in looks)
    return Diagnosis(str(root), tuple(findings), {**counts, MASKS: len(marks)}, dict(sizes.most_common()))


class Folders(NamedTuple):
    """Where each group is; masks have the same path below `masks` as their image below `base`."""

    train: Path
    test: Path | None
    defects: tuple[Path, ...]
    base: Path
    masks: Path | None


def _unusable(given: Sequence[Path], classes: Sequence[Path]) -> Finding | None:
    """What makes it pointless to look further: folders that cannot be listed, or several data sets in one."""
    closed = tuple(str(place) for place in given if not _listable(place))
    if closed:
        return Finding("error", "missing-folder", closed, "No such folder, or no right to read it.", "Check the path.")
    if classes:
        message, advice = "Each of these folders is a data set of its own.", f"Check one at a time: {classes[0]}."
        return Finding("error", "several-classes", tuple(place.name for place in classes), message, advice)
    return None


def _classes(root: Path) -> list[Path]:
    """Subfolders that are data sets themselves, where `root` is not one."""
    if any((root / known).is_dir() for known in ("train", "test", "good", "defects")):
        return []
    return [place for place in _children(root) if (place / "train" / "good").is_dir() or (place / "good").is_dir()]


def _children(folder: Path) -> list[Path]:
    if not _listable(folder):
        return []
    return sorted(place for place in folder.iterdir() if place.is_dir() and not place.name.startswith("."))


def _listable(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.R_OK | os.X_OK)


def _folders(root: Path, good: Path | None, defects: Path | None, masks: Path | None) -> Folders:
    train = _first(root / "train" / "good", root / "train", root / "good") or root
    test = _first(root / "test" / "good")
    masks = masks or _first(
        root / "masks", root / "ground_truth", root / "test" / "masks", root / "test" / "ground_truth"
    )
    base = defects or _first(root / "test", root / "defects") or root
    kinds: tuple[Path, ...] = ()
    if defects or base == root / "defects":
        kinds = (base,)
    elif base != root or train == root / "good":
        kinds = tuple(place for place in _children(base) if place not in (train, test, masks))
    return Folders(good or train, test, tuple(kind for kind in kinds if kind != good), base, masks)


def _first(*places: Path) -> Path | None:
    return next((place for place in places if place.is_dir()), None)


def _paths(folders: Folders) -> dict[str, list[Path]]:
    """Files of each group, each file in one group only; where folders overlap, the narrower meaning wins."""
    places = {MASKS: [folders.masks], DEFECTS: folders.defects, TEST: [folders.test], TRAIN: [folders.train]}
    found: dict[str, list[Path]] = {}
    taken: set[str] = set()  # not by the links' targets: one file linked into two groups is a duplicate
    for group, inside in places.items():
        listed = {os.path.abspath(path): path for place in inside if place for path in images.find(place)}
        found[group] = [path for full, path in listed.items() if full not in taken]
        taken |= listed.keys()
    return found


def _name(root: Path, path: Path) -> str:
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def _nested(folders: Folders, label: Callable[[Path], str]) -> Iterator[Finding]:
    places = [place for place in (folders.train, folders.test, *folders.defects, folders.masks) if place]
    inside = {max(pair, key=lambda place: len(place.resolve().parts)) for pair in combinations(places, 2) if _in(*pair)}
    inside |= {Path(at, name) for at, names, _ in os.walk(folders.train) for name in names if name.lower() in _NOT_GOOD}
    if inside:
        files = tuple(sorted({label(place) for place in inside}))
        message = "A folder lies inside another group's folder, so its images would count with the wrong label."
        yield Finding("error", "nested-folders", files, message, "Keep good, defects and masks beside each other.")


def _in(one: Path, other: Path) -> bool:
    one, other = one.resolve(), other.resolve()
    return one.is_relative_to(other) or other.is_relative_to(one)


def _ignored(folders: Folders, name: Callable[[Path], str]) -> Iterator[Finding]:
    places = [place for place in (folders.train, folders.test, *folders.defects, folders.masks) if place]
    found = {name(file) for place in places for file in place.rglob("*") if file.suffix.lower() in _UNREAD_SUFFIXES}
    if found:
        message = f"{_many(len(found), 'file')} of a format that is not read: left out."
        yield Finding("warning", "ignored-files", tuple(sorted(found)), message, "Convert them to PNG.")


@dataclass(frozen=True, eq=False)
class Look:
    """One decoded image, reduced; `traits` (5,) are the first five of `_TRAITS`, `thumb` is luma (64, 64)."""

    path: Path
    name: str
    group: str
    size: tuple[int, int]  # (H, W)
    digest: bytes
    gray: bool
    traits: Floats
    thumb: NDArray[np.uint8]
    content: str  # format by content where the suffix says otherwise, else ""
    jpeg_quality: int  # 100 for everything else


class Mark(NamedTuple):
    """One decoded mask; `share` of its pixels are anomalous."""

    path: Path
    size: tuple[int, int]
    share: float


def _threaded(work: Callable[[Any], T], jobs: Sequence[Any], done: Callable[[int], None]) -> list[T]:
    """Pillow, hashing and numpy release the interpreter's lock on arrays, so threads suffice; order is kept."""
    results: list[T] = []
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 16)) as pool:
        for result in pool.map(work, jobs):
            results.append(result)
            done(1)
    return results


def _look(name: Callable[[Path], str], job: tuple[str, Path]) -> Look | Mark | ImageError:
    group, path = job
    try:
        if group == MASKS:
            mask = images.load_mask(path)
            return Mark(path, (mask.shape[0], mask.shape[1]), float(mask.mean()))
        pixels = images.load(path)
        with open(path, "rb") as stream:
            content, quality = _container(path, stream)
    except ImageError as error:
        return error
    except OSError as error:  # the file went away between the two reads
        return ImageError(path, f"cannot be opened: {error.strerror}", "Check the path and its permissions.")
    red, green, blue = (pixels[:, :, channel] for channel in range(3))
    size = (pixels.shape[0], pixels.shape[1])
    digest = hashlib.blake2b(pixels.data, digest_size=16, person=f"{size[0]}x{size[1]}".encode()).digest()
    gray = bool(np.array_equal(red, green) and np.array_equal(green, blue))
    thumb = images.resize(images.luma(pixels), _THUMB)
    return Look(path, name(path), group, size, digest, gray, _traits(pixels), thumb, content, quality)


def _traits(pixels: NDArray[np.uint8]) -> Floats:
    """Brightness, contrast, ln sharpness (mean |Laplacian|), R − G, B − G; all at 256², so that sizes compare."""
    small = images.resize(pixels, _SIDE)
    luma = images.luma(small).astype(np.float32)
    laplacian = 4 * luma[1:-1, 1:-1] - luma[:-2, 1:-1] - luma[2:, 1:-1] - luma[1:-1, :-2] - luma[1:-1, 2:]
    red, green, blue = (float(small[:, :, channel].mean()) for channel in range(3))
    sharpness = np.log(np.abs(laplacian).mean() + 0.1)  # a flat image has no logarithm
    return np.array([luma.mean(), luma.std(), sharpness, red - green, blue - green], dtype=np.float32)


def _container(path: Path, stream: BinaryIO) -> tuple[str, int]:
    """The format by content if the suffix contradicts it, and the JPEG quality."""
    head = stream.read(4)
    kind, suffixes = next((known for magic, known in _CONTENTS.items() if head.startswith(magic)), ("", ()))
    wrong = kind if kind and path.suffix.lower() not in suffixes else ""
    return wrong, _jpeg_quality(stream) if kind == "JPEG" else 100


def _jpeg_quality(stream: BinaryIO) -> int:
    """libjpeg's 1..100, from the sum of the first quantisation table: scale s = sum / 3685; 50 / s or 100 − 50 s."""
    stream.seek(2)
    while len(head := stream.read(4)) == 4 and head[0] == 0xFF and head[1] != 0xDA:
        length = int.from_bytes(head[2:]) - 2
        if head[1] == 0xDB and length > 64:
            table = stream.read(length)
            wide = table[0] >> 4 and len(table) > 128
            scale = float(np.frombuffer(table, ">u2" if wide else "u1", 64, 1).sum()) / _STANDARD_TABLE
            return round(50 / scale if scale > 1 else 100 - 50 * scale)
        stream.seek(length, os.SEEK_CUR)
    return 100


def _few(good: int) -> Iterator[Finding]:
    if good < FEWEST:
        message = f"{_many(good, 'usable good image')}: at least {FEWEST} are needed to train."
        yield Finding("error", "too-few-good", (), message, "Add good images, in all their normal variety.")
    elif good < FEW:
        message = f"Few good images. {_promise(good)}"
        yield Finding("warning", "few-good", (), message, f"Add good images: {FEW} or more, 400 to promise 1 %.")


def _unreadable(errors: Sequence[ImageError], name: Callable[[Path], str]) -> Iterator[Finding]:
    alike: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for error in errors:
        alike[error.reason, error.remedy].append(name(Path(error.source)))
    for (reason, remedy), files in alike.items():
        yield Finding("error", "unreadable", tuple(files), f"Cannot be used: {reason}.", remedy)


def _duplicates(looks: Sequence[Look]) -> Iterator[Finding]:
    same: defaultdict[bytes, list[Look]] = defaultdict(list)
    for look in looks:
        same[look.digest].append(look)
    for alike in same.values():
        files, groups = tuple(look.name for look in alike), _groups(alike)
        if len(groups) > 1:
            message = f"The same picture is in {' and '.join(groups)}."
            advice = "Keep it in one group: what was trained on cannot be tested on, and a part has one label."
            yield Finding("error", "duplicate-across", files, message, advice)
        elif len(files) > 1:
            message = f"The same picture, {len(files)} times in {groups[0]}."
            yield Finding("warning", "duplicate", files, message, "Keep one of each: copies add nothing but weight.")


def _groups(looks: Iterable[Look]) -> list[str]:
    present = {look.group for look in looks}
    return [group for group in (TRAIN, TEST, DEFECTS) if group in present]


def _near_duplicates(looks: Sequence[Look]) -> Iterator[Finding]:
    """Sets of images that are connected by the correlation of what is particular to each.

    That is the fine detail of its thumbnail (less its 3×3 mean) minus the median detail of all images: parts in the
    same fixture share the latter, while a second shot or a saved-again copy shares the former. The limit is two thirds
    of the way from the usual correlation with an image's nearest neighbours to 1, within `NEAR`: where several
    products are mixed in one folder, the parts of each are alike, yet no copies.
    """
    looks = list({look.digest: look for look in looks}.values())
    if len(looks) < FEWEST:
        return
    detail = np.stack([_detail(look.thumb) for look in looks])
    detail -= np.median(detail, axis=0)
    detail /= np.maximum(np.linalg.norm(detail, axis=1, keepdims=True), 1e-6)
    leader, neighbours = np.arange(len(looks)), min(NEIGHBOURS, len(looks))
    for start in range(0, len(looks), 512):
        correlation = detail[start : start + 512] @ detail.T
        nearest = np.partition(correlation, -neighbours, axis=1)[:, -neighbours:]
        close = correlation > np.clip((2 + np.median(nearest, axis=1, keepdims=True)) / 3, *NEAR)
        for row in np.flatnonzero(close.sum(axis=1) > 1):
            linked = leader[close[row]]
            leader[np.isin(leader, linked)] = linked.min()
    sets: defaultdict[int, list[Look]] = defaultdict(list)
    for at, look in zip(leader.tolist(), looks, strict=True):
        sets[at].append(look)
    for alike in (found for found in sets.values() if len(found) > 1):
        message = f"Almost the same picture, {len(alike)} times in {' and '.join(_groups(alike))}."
        advice = "Look at them. If they show one and the same part, keep one, or keep all in one group."
        yield Finding("warning", "near-duplicate", tuple(look.name for look in alike), message, advice)


def _detail(thumb: NDArray[np.uint8]) -> Floats:
    """Luma (S, S) less its 3×3 mean, flattened (S²,)."""
    side = thumb.shape[0]
    padded = np.pad(thumb.astype(np.float32), 1, mode="edge")
    mean = sum(padded[row : row + side, column : column + side] for row in range(3) for column in range(3)) / 9
    return np.asarray(padded[1:-1, 1:-1] - mean, dtype=np.float32).ravel()


def _unlike(looks: Sequence[Look]) -> Iterator[Finding]:
    """Images of one good group of which a trait is further than `UNLIKE` from the median: |x − m| / √(σ² + floor²)
    with σ = 1.4826 · median |x − m|."""
    if len(looks) < FEWEST_FOR_SPREAD:
        return
    thumbs = np.stack([look.thumb for look in looks]).astype(np.float32)
    distance = np.abs(thumbs - np.median(thumbs, axis=0)).mean(axis=(1, 2))
    values = np.column_stack([np.stack([look.traits for look in looks]), np.log(distance + 0.1)])
    centre = np.median(values, axis=0)
    z = (values - centre) / np.hypot(1.4826 * np.median(np.abs(values - centre), axis=0), _FLOORS)
    z[:, -1] = np.maximum(z[:, -1], 0)  # near the median image is no fault
    found = sorted(np.flatnonzero((np.abs(z) > UNLIKE).any(axis=1)).tolist(), key=lambda at: -np.abs(z[at]).max())
    if len(found) > CROWD * len(looks):
        message = f"{len(found)} of {len(looks)} {looks[0].group} images are unlike the rest: a group of their own?"
        advice = "Look at them. If two kinds of parts or two lamps are mixed on purpose, all is well."
        yield Finding("warning", "two-populations", tuple(looks[at].name for at in found), message, advice)
        return
    for at in found:
        traits = [f"{_TRAITS[k][int(z[at, k] > 0)]} (z = {z[at, k]:+.0f})" for k in np.argsort(-np.abs(z[at]))]
        message = f"Unlike the other {looks[at].group} images: {', '.join(traits[: (np.abs(z[at]) > UNLIKE).sum()])}."
        yield Finding("warning", "unlike-the-rest", (looks[at].name,), message, "Look at it: is it really good?")


def _shift(looks: Sequence[Look]) -> Iterator[Finding]:
    """Median brightness of the good test images against the good training images', in the latter's robust σ."""
    train, test = (np.array([look.traits[0] for look in looks if look.group == group]) for group in (TRAIN, TEST))
    if min(len(train), len(test)) < FEWEST:
        return
    usual, shift = float(np.median(train)), float(np.median(test) - np.median(train))
    spread = 1.4826 * float(np.median(np.abs(train - usual)))
    if abs(shift) > max(SHIFT * spread, SHIFT_LEVELS):
        message = (
            f"The light differs: good test images are {abs(shift):.0f} gray levels "
            f"{'brighter' if shift > 0 else 'darker'} than good training images "
            f"({usual + shift:.0f} against {usual:.0f}, spread {spread:.1f})."
        )
        advice = "Take both under the same light, or let training vary the brightness."
        yield Finding("note", "lighting-shift", (), message, advice)


def _gray_and_colour(looks: Sequence[Look]) -> Iterator[Finding]:
    gray, colour = ([look for look in looks if look.gray == kind] for kind in (True, False))
    if gray and colour:
        fewer, kind = (gray, "gray") if len(gray) <= len(colour) else (colour, "coloured")
        message = f"Gray and coloured images are mixed: {len(fewer)} of {len(looks)} {kind}."
        advice = "Take all images with one camera setting: the difference itself looks like an anomaly."
        yield Finding("warning", "gray-and-colour", tuple(look.name for look in fewer), message, advice)


def _sizes(looks: Sequence[Look]) -> Iterator[Finding]:
    if not looks:
        return
    ratios = np.array([look.size[1] / look.size[0] for look in looks])
    off = np.abs(ratios / np.median(ratios) - 1) > ASPECT
    if off.any():
        files = tuple(look.name for look, odd in zip(looks, off, strict=True) if odd)
        message = f"{len(files)} of {len(looks)} images have another aspect ratio, width / height, than the others."
        advice = "Crop them alike: images are brought to one square size, which would distort these differently."
        yield Finding("warning", "odd-aspect", files, message, advice)
    usual = Counter(look.size for look in looks).most_common(1)[0][0]
    files = tuple(look.name for look, odd in zip(looks, off, strict=True) if look.size != usual and not odd)
    if files:
        message = f"{len(files)} of {len(looks)} images are not {usual[1]} × {usual[0]} pixels like most."
        advice = "All are resized, so this may be well; check that the parts appear equally large and sharp."
        yield Finding("note", "odd-size", files, message, advice)


def _quality(looks: Sequence[Look]) -> Iterator[Finding]:
    tiny = tuple(look.name for look in looks if min(look.size) < TINY)
    if tiny:
        message = f"{_many(len(tiny), 'image')} with a side below {TINY} pixels."
        yield Finding("warning", "tiny", tiny, message, "Take larger images: defects need some pixels to be seen.")
    poor = [look for look in looks if look.jpeg_quality < POOR_JPEG]
    if poor:
        worst = min(look.jpeg_quality for look in poor)
        message = f"{_many(len(poor), 'image')} strongly compressed, JPEG quality below {POOR_JPEG} (worst {worst})."
        advice = "Save as PNG, or as JPEG of quality 90 and more: blocks hide defects and look like some."
        yield Finding("warning", "compressed", tuple(look.name for look in poor), message, advice)
    misnamed: defaultdict[str, list[str]] = defaultdict(list)
    for look in looks:
        misnamed[look.content].append(look.name)
    for content, files in misnamed.items():
        if content:
            message = f"The content is {content}, the file name says otherwise."
            advice = "It can be read as it is; rename it so that other programs can, too."
            yield Finding("note", "wrong-suffix", tuple(files), message, advice)


_MASK_CASES: dict[str, tuple[Severity, str, str]] = {
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


def _masks(
    folders: Folders,
    paths: dict[str, list[Path]],
    marks: dict[Path, Mark],
    sizes: dict[Path, tuple[int, int]],
    name: Callable[[Path], str],
) -> Iterator[Finding]:
    """Masks against the images they belong to, unreadable ones included; `sizes` are of the readable images."""
    known: defaultdict[tuple[Path, str], list[Path]] = defaultdict(list)
    for mask in paths[MASKS]:
        known[mask.relative_to(folders.masks or "").parent, mask.stem].append(mask)
    pairs = {path: _fitting(path, path.relative_to(folders.base).parent, known) for path in paths[DEFECTS]}
    uses = Counter(mask for fitting in pairs.values() for mask in fitting)
    nominal = {
        mask for path in paths[TRAIN] + paths[TEST] for mask in _fitting(path, Path("good"), known)
    } - uses.keys()
    blank = {mask for mask, mark in marks.items() if mark.share == 0}
    found = {
        "mask-without-image": set(paths[MASKS]) - nominal - uses.keys(),
        "mask-ambiguous": {mask for fit in pairs.values() for mask in fit if len(fit) > 1 or uses[mask] > 1},
        "mask-size": {
            mask
            for path, fitting in pairs.items()
            for mask in fitting
            if path in sizes and mask in marks and marks[mask].size != sizes[path]
        },
        "mask-on-good": nominal - blank,
        "empty-mask-on-good": nominal & blank,
        "mask-empty": blank & uses.keys(),
        "mask-large": {mask for mask, mark in marks.items() if mark.share > LARGE_MASK},
        "defect-without-mask": {path for path, fitting in pairs.items() if not fitting},
    }
    for code, files in found.items():
        if files:
            severity, message, advice = _MASK_CASES[code]
            yield Finding(severity, code, tuple(name(path) for path in sorted(files)), message, advice)


def _fitting(path: Path, folder: Path, known: dict[tuple[Path, str], list[Path]]) -> list[Path]:
    """The masks of an image: in its own subfolder, else in none; named like it, or that and `_mask`."""
    keys = [(place, stem) for place in (folder, Path()) for stem in (path.stem, f"{path.stem}_mask")]
    return next((known[key] for key in keys if key in known), [])
