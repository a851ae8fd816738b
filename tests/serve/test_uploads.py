"""What is made of a picture's bytes before anything is decoded."""

from __future__ import annotations

import io
import struct
import time
import zlib

import numpy as np
import pytest
from PIL import Image

from fcdd.serve.limits import Limits, Refusal
from fcdd.serve.uploads import decode, measure

from .running import encoded


def announced(width: int, height: int) -> bytes:
    """A PNG whose header promises this size and which holds no pixel."""
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [head, b"IDAT" + zlib.compress(b""), b"IEND"]
    framed = (struct.pack(">I", len(c) - 4) + c + struct.pack(">I", zlib.crc32(c)) for c in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (announced(30_000, 30_000), 413),
        (announced(2**31 - 1, 2**31 - 1), 413),
        (announced(16_385, 1), 413),
        (b"\x89PNG\r\n\x1a\n", 415),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", 415),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", 415),
        (b"", 422),
    ],
)
def test_bad_content_is_refused_by_its_header(content: bytes, status: int) -> None:
    with pytest.raises(Refusal) as refused:
        measure(content, Limits())
    assert refused.value.status == status


def test_a_header_without_pixels_is_damage() -> None:
    assert measure(announced(64, 32), Limits()) == 2048
    with pytest.raises(Refusal) as refused:
        decode(announced(64, 32), Limits())
    assert refused.value.status == 422


def pages(count: int, order: str) -> bytes:
    """A TIFF of empty pages."""
    entries = b"".join(struct.pack(order + "HHII", tag, 4, 1, 1) for tag in range(256, 265))
    size = 2 + len(entries) + 4
    links = [8 + size * (at + 1) for at in range(count - 1)] + [0]
    head = {"<": b"II*\0", ">": b"MM\0*"}[order] + struct.pack(order + "I", 8)
    return head + b"".join(struct.pack(order + "H", 9) + entries + struct.pack(order + "I", link) for link in links)


@pytest.mark.parametrize("order", ["<", ">"])
def test_thousands_of_pages_are_not_counted(order: str) -> None:
    begun = time.process_time()
    with pytest.raises(Refusal, match="more than one page"):
        measure(pages(100_000, order), Limits())
    assert time.process_time() - begun < 2  # Pillow takes minutes


def test_frames_of_other_formats_are_refused() -> None:
    stream = io.BytesIO()
    frames = [Image.new("L", (4, 4), shade) for shade in (0, 255)]
    for kind in ("GIF", "WEBP", "PNG", "TIFF"):
        frames[0].save(stream, kind, save_all=True, append_images=frames[1:])
        with pytest.raises(Refusal) as refused:
            measure(stream.getvalue(), Limits())
        assert refused.value.status == 422
        stream = io.BytesIO()


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "PPM", "GIF", "WEBP", "JPEG"])
def test_every_format_is_read(kind: str) -> None:
    content = encoded(np.full((8, 5, 3), 200, np.uint8), kind)
    assert measure(content, Limits()) == 40
    assert decode(content, Limits()).shape == (8, 5, 3)
