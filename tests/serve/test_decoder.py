"""What is made of an image's bytes, and what that may cost."""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image

from fcdd import images
from fcdd.framing import Frame
from fcdd.serve import decoder
from fcdd.serve.limits import Limits

from .hostile import announced, exif_segments, field, form, frames, pages, tiny_tiles
from .running import encoded

LIMITS = Limits()


@pytest.fixture(autouse=True)
def _no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timer ends the process, which here is that of the tests."""
    monkeypatch.setattr(decoder, "allow", lambda seconds: None)


def work(content: bytes, shape: tuple[int, int] = (4, 6)) -> tuple[int, bytes]:
    return decoder.work(decoder.IMAGE, *shape, content, LIMITS.pixels, LIMITS.side)


def parts(content_type: str, body: bytes, most: int = 1) -> tuple[int, bytes]:
    kind = content_type.encode()
    return decoder.work(decoder.FORM, most, len(kind), kind + body, LIMITS.pixels, LIMITS.side)


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "PPM", "GIF", "WEBP", "JPEG"])
def test_every_format_becomes_the_networks_input(kind: str) -> None:
    content = encoded(np.random.default_rng(0).integers(0, 256, (80, 50, 3), np.uint8), kind)
    status, answer = work(content)
    assert status == 200
    assert decoder.SIZE.unpack_from(answer) == (80, 50)
    pixels = np.frombuffer(answer, np.uint8, offset=decoder.SIZE.size).reshape(4, 6, 3)
    assert (pixels == images.resize(images.load(content), (4, 6))).all()


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (announced(30_000, 30_000), 413),
        (announced(2**31 - 1, 2**31 - 1), 413),
        (announced(16_385, 1), 413),
        (announced(64, 32), 422),
        (b"\x89PNG\r\n\x1a\n", 415),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", 415),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", 415),
        (b"", 422),
        *((frames(kind, 2), 422) for kind in ("GIF", "WEBP", "PNG", "TIFF")),
        (pages(3, "<"), 415),
        (pages(3, ">"), 415),
    ],
)
def test_bad_content_is_refused(content: bytes, status: int) -> None:
    assert work(content)[0] == status


def test_forms_are_utf_8_whatever_they_say() -> None:
    body = form(b"content", "Blech ü.png".encode())
    for charset in ("utf-8", "utf-7", "punycode", "no-such-charset"):
        status, answer = parts(f"multipart/form-data; boundary=x; charset={charset}", body)
        assert status == 200
        listed, _, rest = answer.partition(b"\n")
        assert json.loads(listed) == [["Blech ü.png", 7]]
        assert rest == b"content"


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data", form(b"a")),
        ("multipart/form-data; boundary=y", form(b"a")),
        ("multipart/form-data; boundary=x", b""),
        ("multipart/form-data; boundary=x", field(b"image", b"a")),
        ("multipart/form-data; boundary=x", form(b"a", b"a" * 5000)),
        ("multipart/form-data; boundary=x", form(b"a")[:-7] + form(b"b")),
    ],
    ids=["no boundary", "other boundary", "empty", "no file", "long header", "two files"],
)
def test_forms_that_cannot_be_used_are_refused(content_type: str, body: bytes) -> None:
    assert parts(content_type, body)[0] == 422


def noise(mode: str) -> Image.Image:
    levels = np.random.default_rng(0).integers(0, 256, (2000, 2000, 3), np.uint8)
    if mode == "I;16":
        return Image.fromarray(levels[..., 0].astype(np.uint16) * 256)
    return Image.fromarray(levels).convert(mode)


KINDS: dict[str, Callable[[io.BytesIO], None]] = {
    "JPEG": lambda stream: noise("RGB").save(stream, "JPEG"),
    "progressive JPEG": lambda stream: noise("RGB").save(stream, "JPEG", progressive=True),
    "PNG": lambda stream: noise("RGB").save(stream, "PNG", compress_level=1),
    "transparent PNG": lambda stream: noise("RGBA").save(stream, "PNG", compress_level=1),
    "gray transparent PNG": lambda stream: noise("LA").save(stream, "PNG", compress_level=1),
    "PNG of 16 bits": lambda stream: noise("I;16").save(stream, "PNG", compress_level=1),
    "WebP": lambda stream: noise("RGB").save(stream, "WEBP", method=0),
    "TIFF of floats": lambda stream: noise("F").save(stream, "TIFF"),
    "printer's TIFF": lambda stream: noise("CMYK").save(stream, "TIFF"),
    "GIF": lambda stream: noise("P").save(stream, "GIF"),
}


def in_a_process(content: bytes, pixels: int) -> subprocess.CompletedProcess[bytes]:
    """The decoder as the server starts it, with one image and memory for `pixels` pixels."""
    memory = decoder.memory(Limits(body=max(len(content), 1), pixels=pixels))
    command = [sys.executable, "-m", decoder.__name__, *map(str, (memory, LIMITS.pixels, LIMITS.side))]
    job = decoder.JOB.pack(decoder.IMAGE, 64, 64, *decoder.packed(Frame()), len(content)) + content
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(command, input=job, capture_output=True, env=environment, timeout=60)


def status_of(ended: subprocess.CompletedProcess[bytes]) -> int:
    status: int = decoder.ANSWER.unpack_from(ended.stdout, decoder.ANSWER.size)[0]
    return status


@pytest.mark.parametrize("kind", KINDS)
def test_honest_images_fit_the_memory(kind: str) -> None:
    stream = io.BytesIO()
    KINDS[kind](stream)
    ended = in_a_process(stream.getvalue(), pixels=4_000_000)
    assert status_of(ended) == 200, ended.stdout[-200:]


def test_an_image_made_to_take_memory_is_refused() -> None:
    ended = in_a_process(tiny_tiles(1400), pixels=2_000_000)
    # A slow processor runs out of its time first, which ends the process.
    if ended.returncode != -signal.SIGPROF:
        assert ended.returncode == 0
        assert status_of(ended) == 422
        assert b"more memory" in ended.stdout


def test_an_image_made_to_take_time_ends_the_process() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = in_a_process(exif_segments(31_000_000), pixels=25_000_000)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ended.returncode == -signal.SIGPROF
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < decoder.HEADER_SECONDS + 2
