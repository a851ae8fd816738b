"""Any image file or bytes → RGB uint8 array, or a typed error; masks too. The only place that opens images."""

from __future__ import annotations

import io
import os
import re
import struct
import threading
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from fcdd.errors import DataError, ImageError
from fcdd.files import open_regular, write_atomically

Fit = Literal["stretch", "crop"]
Encoded = str | Path | bytes | BinaryIO

IMAGE_SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".gif", ".pgm", ".ppm", ".pnm"},
)
# Pillow knows dozens more, some of which start other programs (EPS starts Ghostscript): uploads must not reach them.
_FORMATS = ("PNG", "JPEG", "BMP", "TIFF", "WEBP", "GIF", "PPM")
_LOSSY = frozenset({"JPEG", "MPO", "WEBP"})
_ALPHA_MODES = frozenset({"LA", "La", "PA", "RGBA", "RGBa"})
_MAX_PIXELS = 100_000_000
_BAND = 1_000_000  # pixels that are converted at a time
_Scaling = tuple[NDArray[Any], Callable[[NDArray[Any]], NDArray[Any]]]  # gray levels, and what makes them 0..255
_ORIENTATION, _BITS_PER_SAMPLE, _PHOTOMETRIC = 0x0112, 258, 262
# warnings.catch_warnings swaps process-wide state, so only one thread at a time may hold it; decoding stays parallel.
_header_lock = threading.Lock()


def load(
    source: Encoded, *, background: tuple[int, int, int] = (255, 255, 255), max_pixels: int = _MAX_PIXELS
) -> NDArray[np.uint8]:
    """Decode one image to RGB uint8 (H, W, 3), upright by its EXIF orientation.

    The content decides the format, not the file's suffix. Transparent pixels are composited on `background`.
    Gray of 12 or 16 bits is scaled to 0..255 with rounding (x / 257 for 16 bits); 16-bit colour keeps its high byte.
    Float gray is read as 0..1, 0..255 or 0..65535, whichever is the smallest range that holds it. Colour profiles
    are ignored. Of a phone's JPEG with several images (MPO) the primary one is read.

    Raises:
        ImageError: missing, empty, damaged, not an image, more than one frame, or more than `max_pixels` pixels
            (known from the header, before anything is decoded).
    """
    with _opened(source, max_pixels) as (image, name):
        pixels = _rgb(image, name, background)
        return np.ascontiguousarray(_upright(pixels, _orientation(image)))


def load_mask(source: Encoded, *, max_pixels: int = _MAX_PIXELS) -> NDArray[np.bool_]:
    """Decode one mask to bool (H, W), upright by its EXIF orientation; nonzero = anomalous.

    Any mode: gray and float count where ≠ 0; palette images count by index ≠ 0, whatever colour the index has; colour
    images count where any colour channel ≠ 0, and their alpha is ignored. A lossy file (JPEG, WebP) is refused unless
    it holds at most two levels, because compression turns its zeros into small numbers.
    """
    with _opened(source, max_pixels) as (image, name):
        if image.mode in ("P", "PA"):
            levels: NDArray[Any] = np.asarray(image if image.mode == "P" else image.getchannel(0))
        elif image.mode == "F":
            levels = _finite(image, name)
        elif image.mode.startswith("I"):
            levels = _integers(image)[0]
        else:
            levels = np.asarray(image.convert("L" if image.mode in ("1", "L", "LA", "La") else "RGB"))
        if image.format in _LOSSY and len(np.unique(levels)) > 2:
            raise ImageError(name, f"a {image.format} mask has lost its exact zeros", "Save masks as PNG.")
        mask = (levels != 0).reshape(image.height, image.width, -1).any(axis=2)
        return np.ascontiguousarray(_upright(mask, _orientation(image)))


def size(source: Encoded, *, max_pixels: int = _MAX_PIXELS) -> tuple[int, int]:
    """(H, W) after EXIF rotation, from the header alone: nothing is decoded, so damage further on is not noticed."""
    with _opened(source, max_pixels, decode=False) as (image, _):
        # Pillow gives the turned size of a TIFF itself; for a PNG, getexif would decode where the header has no EXIF.
        known = image.format == "TIFF" or (image.format == "PNG" and "exif" not in image.info)
        turned = not known and _orientation(image) >= 5
        return (image.width, image.height) if turned else (image.height, image.width)


def save_png(array: NDArray[Any], path: str | Path, *, fast: bool = False) -> None:
    """Write uint8 (H, W), (H, W, 3) or (H, W, 4), or bool (H, W) as 0 and 255; `path` appears whole or not at all.

    `fast` takes a third of the time for a file a little larger.
    """
    if array.dtype == np.bool_:
        array = array.astype(np.uint8) * 255
    if array.dtype != np.uint8:
        raise TypeError(f"save_png takes uint8 or bool, not {array.dtype}")
    # There may be thousands, and each can be made again: none waits for the disk.
    write_atomically(path, _fast_png(array) if fast else _png(array), durable=False)


def _png(array: NDArray[np.uint8]) -> bytes:
    content = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(array)).save(content, "PNG")
    return content.getvalue()


def _fast_png(array: NDArray[np.uint8]) -> bytes:
    """Every row as its difference to the one above, where Pillow tries all five filters of PNG on each row."""
    height, width = array.shape[:2]
    values = array.reshape(height, -1)
    rows = np.empty((height, values.shape[1] + 1), np.uint8)
    rows[:, 0], rows[0, 1:] = 2, values[0]  # 2 is the filter "up"
    np.subtract(values[1:], values[:-1], out=rows[1:, 1:])
    colours = {1: 0, 3: 2, 4: 6}[values.shape[1] // width]  # PNG's numbers of grey, RGB and RGBA
    header = struct.pack(">IIBBBBB", width, height, 8, colours, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.data, 1)), (b"IEND", b""))
    chunks = (struct.pack(">I", len(c)) + n + c + struct.pack(">I", zlib.crc32(n + c)) for n, c in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def resize(pixels: NDArray[np.uint8], side: int | tuple[int, int], fit: Fit = "stretch") -> NDArray[np.uint8]:
    """(H, W) or (H, W, 3) → (side, side[, 3]), or the height and width given, bilinear and antialiased.

    Along the width first, rounded, then along the height: left alone, Pillow 13 takes the other order for some sizes,
    which moves every fourth pixel by a grey level, and the exported model knows one order only.
    "stretch" resizes both sides exactly; "crop" keeps the proportions, so that the image just covers the shape, and
    cuts off what lies beyond it on either side.
    """
    image = Image.fromarray(pixels)
    height, width = (side, side) if isinstance(side, int) else side
    if fit == "stretch":
        return np.array(_resampled(image, width, height))
    by_height = height * image.width >= width * image.height
    wanted, length = (height, image.height) if by_height else (width, image.width)
    across, down = max(width, round(image.width * wanted / length)), max(height, round(image.height * wanted / length))
    left, top = (across - width) // 2, (down - height) // 2
    return np.array(_resampled(image, across, down).crop((left, top, left + width, top + height)))


def _resampled(image: Image.Image, width: int, height: int) -> Image.Image:
    narrow = image.resize((width, image.height), Image.Resampling.BILINEAR)
    return narrow.resize((width, height), Image.Resampling.BILINEAR)


def resize_mask(mask: NDArray[np.bool_], side: int) -> NDArray[np.bool_]:
    """(H, W) → (side, side) by nearest neighbour: the value under each new pixel's centre."""
    rows, columns = (((np.arange(side) + 0.5) * length / side).astype(np.int64) for length in mask.shape)
    return mask[np.ix_(rows, columns)]


def luma(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """RGB (H, W, 3) → gray (H, W) by ITU-R 601: 0.299 R + 0.587 G + 0.114 B."""
    return np.array(Image.fromarray(pixels).convert("L"))


def find(folder: str | Path) -> list[Path]:
    """All image files below `folder`, by suffix, in natural order (2 before 10); hidden files and folders ignored.

    Links to folders are followed, each folder once.
    """
    root = Path(folder)
    if not root.is_dir():
        raise DataError(f"{root}: no such folder. Give the folder that holds the images.")
    found: list[Path] = []
    seen: set[str] = set()
    for place, folders, names in os.walk(root, followlinks=True):
        if os.path.realpath(place) in seen:
            folders.clear()
            continue
        seen.add(os.path.realpath(place))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [
            Path(place, name)
            for name in names
            if not name.startswith(".") and os.path.splitext(name)[1].lower() in IMAGE_SUFFIXES
        ]
    return sorted(found, key=lambda path: (_natural(path.relative_to(root)), str(path)))


def _natural(path: Path) -> list[list[str | int]]:
    """Text and numbers alternate in each part, so that like is compared with like."""
    return [
        [int(piece) if at % 2 else piece.casefold() for at, piece in enumerate(re.split(r"([0-9]+)", part))]
        for part in path.parts
    ]


@contextmanager
def _opened(source: Encoded, max_pixels: int, *, decode: bool = True) -> Iterator[tuple[Image.Image, str]]:
    """The opened image and its name for messages; whatever goes wrong, also in the block, becomes an ImageError."""
    name = _name(source)
    remedy = "Export it again from its origin, or remove it."
    try:
        with _stream(source, name) as stream:
            image = _header(stream, name, max_pixels)
            if decode:
                image.load()
            yield image, name
    except (ImageError, MemoryError):
        raise
    except UnidentifiedImageError as error:
        known = ", ".join(_FORMATS)
        raise ImageError(
            name, f"not an image that can be read ({known})", "Convert it to PNG, or remove it."
        ) from error
    except Image.DecompressionBombError as error:
        raise ImageError(name, "far too many pixels", "Crop or shrink it.") from error
    except Exception as error:  # Pillow's decoders raise almost any type on damaged data
        raise ImageError(name, f"damaged or truncated ({error})", remedy) from error


def _name(source: Encoded) -> str:
    if isinstance(source, str | Path):
        return str(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "image data"


@contextmanager
def _stream(source: Encoded, name: str) -> Iterator[BinaryIO]:
    """A seekable stream that is known not to be empty."""
    with _bytes_of(source, name) as stream:
        if not stream.read(1):
            raise ImageError(name, "empty, zero bytes", "Export it again from its origin, or remove it.")
        stream.seek(0)
        yield stream


def _bytes_of(source: Encoded, name: str) -> BinaryIO:
    if not isinstance(source, str | Path):
        return io.BytesIO(source if isinstance(source, bytes) else source.read())
    try:
        return open_regular(source)
    except FileNotFoundError as error:
        raise ImageError(name, "no such file", "Check the path.") from error
    except OSError as error:
        raise ImageError(name, f"cannot be opened: {error.strerror}", "Check the path and its permissions.") from error


def _header(stream: BinaryIO, name: str, max_pixels: int) -> Image.Image:
    """Open without decoding, and refuse what must not be decoded."""
    with _header_lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        image = Image.open(stream, formats=_FORMATS)
        pixels = image.width * image.height
        if pixels > max_pixels:
            reason = f"{image.width} × {image.height} pixels, more than the limit of {max_pixels:,}"
            raise ImageError(name, reason, "Crop or shrink it, or raise the limit.")
        if image.format != "MPO" and _has_second(image):
            raise ImageError(name, "several frames or pages in one file", "Save each frame as a file of its own.")
        if image.format != "PNG" or "exif" in image.info:
            image.getexif()  # parsed here once, so that broken metadata cannot warn while decoding
        return image


def _has_second(image: Image.Image) -> bool:
    """Whether there is a second frame. Pillow's count of all takes minutes on a file made to have many."""
    try:
        image.seek(1)
    except EOFError:
        return False
    image.seek(0)
    return True


def _orientation(image: Image.Image) -> int:
    """EXIF orientation 1..8; anything else counts as upright."""
    value = image.getexif().get(_ORIENTATION, 1)
    return value if value in range(1, 9) else 1


def _upright(pixels: NDArray[Any], orientation: int) -> NDArray[Any]:
    """Undo the camera's rotation of (H, W, ...)."""
    if orientation in (2, 5, 7, 4):
        pixels = pixels[:, ::-1]  # the mirrored four are a mirrored image, turned like their partners below
    turns = {1: 0, 2: 0, 3: 2, 4: 2, 5: 1, 6: 3, 7: 3, 8: 1}[orientation]
    return np.rot90(pixels, turns)


def _rgb(image: Image.Image, name: str, background: tuple[int, int, int]) -> NDArray[np.uint8]:
    if image.mode == "F":
        return _by_bands(*_scaled_floats(image, name))
    if image.mode.startswith("I"):
        return _by_bands(*_scaled_integers(image, name))
    if image.mode in _ALPHA_MODES or "transparency" in image.info:
        return _by_bands(np.asarray(_as(image, "RGBA")), lambda rgba: _composited(rgba, background))
    return np.asarray(_as(image, "RGB"))


def _as(image: Image.Image, mode: str) -> Image.Image:
    """The image in this mode; Pillow would copy it even where it has the mode."""
    return image if image.mode == mode else image.convert(mode)


def _by_bands(levels: NDArray[Any], convert: Callable[[NDArray[Any]], NDArray[Any]]) -> NDArray[np.uint8]:
    """RGB uint8 (H, W, 3) by `convert` of a few rows of `levels` (H, W, ...) at a time.

    Of a whole image the intermediate values would take several times the memory of the image.
    """
    height, width = levels.shape[:2]
    rgb = np.empty((height, width, 3), np.uint8)
    rows = max(_BAND // width, 1)
    for top in range(0, height, rows):
        rgb[top : top + rows] = convert(levels[top : top + rows])
    return rgb


def _composited(rgba: NDArray[np.uint8], background: tuple[int, int, int]) -> NDArray[np.uint32]:
    alpha = rgba[:, :, 3:].astype(np.uint32)
    mixed = rgba[:, :, :3] * alpha + np.array(background, dtype=np.uint32) * (255 - alpha)
    return (mixed + 127) // 255


def _integers(image: Image.Image) -> tuple[NDArray[np.int32], int]:
    """Gray levels of 12, 16 or 32 bits, zero = black, and the level that is white."""
    tags: dict[int, Any] = dict(getattr(image, "tag_v2", {}))
    white = 4095 if tags.get(_BITS_PER_SAMPLE) == (12,) else 65535
    levels = np.asarray(image).astype(np.int32)
    # Pillow inverts WhiteIsZero TIFFs of 8 bits only.
    return (white - levels if tags.get(_PHOTOMETRIC) == 0 else levels), white


def _scaled_integers(image: Image.Image, name: str) -> _Scaling:
    levels, white = _integers(image)
    if levels.min() < 0 or levels.max() > white:
        reason = f"gray levels {levels.min()}..{levels.max()} outside 0..{white}"
        raise ImageError(name, reason, "Export it with 8 or 16 bits, unsigned.")
    return levels, lambda band: ((band * 255 + white // 2) // white)[:, :, None]


def _finite(image: Image.Image, name: str) -> NDArray[np.float32]:
    levels = np.asarray(image)
    if not np.isfinite(levels).all():
        raise ImageError(name, "NaN or infinite pixels", "Export it with finite values, best as 8 or 16 bits.")
    return levels


def _scaled_floats(image: Image.Image, name: str) -> _Scaling:
    levels = _finite(image, name)
    low, high = float(levels.min()), float(levels.max())
    white = next((white for white in (1.0, 255.0, 65535.0) if low >= 0 and high <= white), None)
    if white is None:
        reason = f"float levels {low:g}..{high:g} outside 0..1, 0..255 and 0..65535"
        raise ImageError(name, reason, "Scale it to one of these ranges.")
    factor = 255 / white
    return levels, lambda band: np.rint(band * factor)[:, :, None]
