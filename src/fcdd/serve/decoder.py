"""The process that reads what clients sent, `python -m fcdd.serve.decoder`: one job at a time on its standard input.

Whatever bytes a client makes up are parsed here and nowhere else, and the kernel bounds what that may cost: address
space, CPU time, and no files at all. A job that exceeds them costs this process, which `fcdd.serve.decoders` replaces.
"""

from __future__ import annotations

import io
import os
import signal
import struct
import sys
import traceback
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image, UnidentifiedImageError

from fcdd import images
from fcdd.errors import ImageError
from fcdd.framing import FITS, Frame
from fcdd.serve.forms import files_of
from fcdd.serve.limits import Limits, Refusal

try:
    import resource
except ImportError:  # Windows: there only the server's clock ends a decoder
    resource = None  # type: ignore[assignment]

IMAGE, FORM = 0, 1
JOB = struct.Struct("!BIIdBI")  # what it is, two numbers (see `work`), a frame (see `packed`), how many bytes follow
ANSWER = struct.Struct("!HI")  # 200 or the status of a refusal, and how many bytes follow
SIZE = struct.Struct("!II")  # height and width of the image as it was sent, before its resized pixels

BYTES_A_PIXEL = 18  # what decoding takes at its peak; `tests/serve/test_decoder.py` holds every kind of image to it
OWN_MEMORY = 32_000_000
HEADER_SECONDS = 1.0  # of CPU time, for a header or a form
PIXELS_A_SECOND = 5_000_000  # of CPU time; slow machines decode several times as many


def memory(limits: Limits) -> int:
    """Bytes that a decoder may take beside those it has when it starts."""
    return OWN_MEMORY + 3 * limits.body + BYTES_A_PIXEL * limits.pixels


def confine(memory: int) -> None:
    """From here on: `memory` bytes more than now, no file and no core dump. Standard output is a pipe, no file."""
    if resource is None:
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 0
    used = pages * os.sysconf("SC_PAGE_SIZE")
    for kind, most in ((resource.RLIMIT_AS, used + memory), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(kind, (most, most))


def allow(seconds: float) -> None:
    """End this process by SIGPROF after that much CPU time, whatever it is doing; 0 takes the limit away."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def packed(frame: Frame) -> tuple[float, int]:
    """A frame as two numbers: 0 for an aspect that is not known, and for no choice of what to do with others."""
    return frame.aspect or 0.0, 0 if frame.fit is None else 1 + FITS.index(frame.fit)


def unpacked(aspect: float, fit: int) -> Frame:
    return Frame(aspect or None, FITS[fit - 1] if fit else None)


def image(content: bytes, shape: tuple[int, int], pixels: int, side: int, frame: Frame) -> bytes:
    """The size of an encoded image and its RGB bytes resized to `shape` (h, w); Refusal 413, 415 or 422.

    It must have at most `pixels` pixels and `side` pixels a side, which its header tells before anything is decoded.
    """
    try:
        allow(HEADER_SECONDS)
        height, width = images.size(content, max_pixels=side**2)
        if height * width > pixels or max(height, width) > side:
            most = f"at most {pixels / 1e6:g} megapixels and {side:,} pixels a side are taken"
            raise Refusal(413, f"{width} × {height} pixels; {most}")
        frame.check((height, width), "image")
        allow(HEADER_SECONDS + height * width / PIXELS_A_SECOND)
        decoded = images.load(content, max_pixels=pixels)
    except ImageError as error:
        raise Refusal(_status(error), f"{error.reason}. {error.remedy}".strip()) from None
    return SIZE.pack(height, width) + images.resize(frame.apply(decoded), shape).tobytes()


def _status(error: ImageError) -> int:
    """415 where the bytes are no image, 413 where it is too large, 422 where it is one that cannot be used."""
    if isinstance(error.__cause__, UnidentifiedImageError):
        return 415
    return 413 if isinstance(error.__cause__, Image.DecompressionBombError) else 422


def work(
    kind: int, first: int, second: int, content: bytes, pixels: int, side: int, frame: Frame = Frame()
) -> tuple[int, bytes]:
    """Status and answer of a job: for an image the two numbers are height and width to resize it to; for a form the
    most parts it may have, and how many bytes of `content` are its content type."""
    try:
        if kind == IMAGE:
            return 200, image(content, (first, second), pixels, side, frame)
        allow(HEADER_SECONDS)
        return 200, files_of(content[:second].decode("latin-1"), content[second:], first)
    except Refusal as refused:
        return refused.status, refused.detail.encode()
    except MemoryError:
        return 422, b"takes more memory to decode than an image may. Save it again as PNG."
    except Exception:  # a defect of the program, for the server's log
        return 500, traceback.format_exc().encode()


def check() -> None:
    """Decode something within the limits, so that a decoder that says it is ready is."""
    stream = io.BytesIO()
    Image.fromarray(np.zeros((2, 3, 3), np.uint8)).save(stream, "PNG")
    status, answer = work(IMAGE, 1, 1, stream.getvalue(), 6, 3)
    assert status == 200, answer


def main(jobs: BinaryIO, answers: BinaryIO, memory: int, pixels: int, side: int) -> None:
    """Say so when ready, then answer until the server closes the pipe."""
    confine(memory)
    check()
    allow(0)
    answers.write(ANSWER.pack(200, 0))
    answers.flush()
    while head := jobs.read(JOB.size):
        kind, first, second, aspect, fit, length = JOB.unpack(head)
        status, answer = work(kind, first, second, jobs.read(length), pixels, side, unpacked(aspect, fit))
        allow(0)
        answers.write(ANSWER.pack(status, len(answer)))
        answers.write(answer)
        answers.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends it
    main(sys.stdin.buffer, sys.stdout.buffer, *map(int, sys.argv[1:]))
