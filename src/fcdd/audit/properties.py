"""What is known of each image as a whole: light and sharpness, and what its file says of size, camera and date."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image

from fcdd import images

from .evidence import Evidence, Pixels

VISIBLE = ("brightness", "contrast", "sharpness", "colour cast")  # what the network sees of an image as a whole
CAMERA = {ExifTags.Base.Make: "camera make", ExifTags.Base.Model: "camera model", ExifTags.Base.Software: "software"}
TAKEN = (ExifTags.Base.DateTimeOriginal, ExifTags.Base.DateTime)
DAMAGED = (ValueError, TypeError, LookupError, ArithmeticError, SyntaxError, OSError, struct.error)  # Pillow's, on EXIF
Values = NDArray[np.float64] | NDArray[np.str_]


@dataclass(frozen=True)
class Properties:
    """Properties of N images.

    `known` has (N,) numbers or words for each name; a number is NaN, a word "None", where the file has none. Properties
    that are the same for all images are left out. `unusable` has the files whose entry was there but made no sense.
    """

    known: dict[str, Values]
    unusable: dict[str, list[Path]]


def properties(evidence: Evidence) -> Properties:
    """All properties of the images of an audit."""
    rows: list[dict[str, float | str]] = []
    unusable: dict[str, list[Path]] = {}
    for path, array, (height, width) in zip(evidence.paths, evidence.inputs, evidence.sizes, strict=True):
        row, damaged = of_file(path)
        row |= _of_image(images.luma(array), array)
        row |= {"height": float(height), "width": float(width), "aspect": width / height}
        row["bytes per pixel"] = float(row["file size"]) / (height * width)
        rows.append(row)
        for name in damaged:
            unusable.setdefault(name, []).append(path)
    known: dict[str, Values] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        numbers = all(isinstance(value, float | None) for value in values)
        array_: Values = np.array(values, np.float64) if numbers else np.array([str(v) for v in values])
        if len(np.unique(array_)) > 1:
            known[name] = array_
    return Properties(known, unusable)


def _of_image(grey: Pixels, array: Pixels) -> dict[str, float | str]:
    """Of the image as the detector sees it."""
    values = grey.astype(np.float64)
    inner = values[1:-1, 1:-1]
    laplacian = values[:-2, 1:-1] + values[2:, 1:-1] + values[1:-1, :-2] + values[1:-1, 2:] - 4 * inner
    contrast = float(values.std())
    return {
        "brightness": float(values.mean()),
        "contrast": contrast,
        "sharpness": float(np.abs(laplacian).mean()) / max(contrast, 1.0),
        "colour cast": float(array[..., 0].mean() - array[..., 2].mean()),
    }


def of_file(path: Path) -> tuple[dict[str, float | str], list[str]]:
    """What a file says of itself; it has been decoded before, so its image is sound, but its metadata need not be.

    Returns:
        Properties by name (size, format, compression, camera, date), and the names of those that are in the file but
        make no sense, such as an exposure time that is no number.
    """
    found: dict[str, float | str] = {"file size": float(path.stat().st_size)}
    with Image.open(path) as header:
        found["format"] = f"{header.format} {header.mode}"
        tables = getattr(header, "quantization", None)
        if tables:
            found["compression"] = float(np.mean(tables[0]))
        try:
            exif = _exif(header)
            details = exif.get_ifd(ExifTags.IFD.Exif)
        except DAMAGED:
            return found, ["EXIF"]
    unusable = []
    found |= {name: str(exif[tag]) for tag, name in CAMERA.items() if tag in exif}
    exposure = details.get(ExifTags.Base.ExposureTime)
    seconds = _number(exposure)
    if seconds is not None:
        found["exposure time"] = seconds
    elif exposure is not None:
        unusable.append("exposure time")
    taken = next((str(part[tag]) for part in (details, exif) for tag in TAKEN if tag in part), "").strip(" \0:")
    if _is_day(taken[:10]):
        found["day"] = taken[:10]
    elif taken:
        unusable.append("date")
    return found, unusable


def _exif(header: Image.Image) -> Image.Exif:
    """The EXIF block; raises one of `DAMAGED` where it cannot be read, which `getexif` may take for an empty one."""
    raw = header.info.get("exif")
    if not raw:
        return header.getexif()
    exif = Image.Exif()
    exif.load(raw)
    return exif


def _number(value: Any) -> float | None:
    """The value as a finite number above zero, None where it is none."""
    try:
        number = float(value)
    except (ValueError, TypeError, ArithmeticError):
        return None
    return number if math.isfinite(number) and number > 0 else None


def _is_day(text: str) -> bool:
    try:
        datetime.strptime(text.replace("-", ":"), "%Y:%m:%d")
    except ValueError:
        return False
    return True
