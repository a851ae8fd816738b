"""From a request's body to pictures: bounded in bytes, pixels and time, in memory only, whatever the client sends."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import numpy as np
from fastapi import Request
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from fcdd import images
from fcdd.errors import ImageError
from fcdd.serve.limits import Limits, Refusal

FIELD = "image"  # of a multipart body
MULTIPART, RAW = "multipart/form-data", "application/octet-stream"
NAME_LENGTH = 200


@dataclass(frozen=True)
class Upload:
    """One encoded picture; `name` is what the client calls it and is only ever given back to it."""

    name: str | None
    content: bytes


async def receive(request: Request, limits: Limits, most: int) -> list[Upload]:
    """The one picture of a raw body, or the 1 … `most` pictures of a multipart body; Refusal 408, 413, 415 or 422."""
    kind = request.headers.get("content-type", RAW).partition(";")[0].strip().lower()
    if kind != MULTIPART and kind != RAW and not kind.startswith("image/"):
        raise Refusal(415, f"content type {kind[:80]!r}: send image/*, {RAW} or {MULTIPART}")
    try:
        async with asyncio.timeout(limits.upload_seconds):
            body = await _body(request, limits.body)
    except TimeoutError:
        # What is left of the body would be read as the next request.
        raise Refusal(408, f"no complete body within {limits.upload_seconds:g} s", {"Connection": "close"}) from None
    if kind != MULTIPART:
        return [Upload(None, body)]
    found = await _parts(request, body, most)
    if not found:
        raise Refusal(422, f"the form has no file in a field named {FIELD!r}")
    return found


async def _body(request: Request, limit: int) -> bytes:
    declared = request.headers.get("content-length", "0")
    too_large = Refusal(413, f"more than {limit:,} bytes")
    if declared.isdecimal() and int(declared) > limit:
        raise too_large
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise too_large
    return bytes(body)


async def _parts(request: Request, body: bytes, most: int) -> list[Upload]:
    async def stream() -> AsyncGenerator[bytes, None]:
        yield body

    parser = MultiPartParser(request.headers, stream(), max_files=most, max_fields=most)
    parser.spool_max_size = len(body) + 1  # so that no part is ever written to the disk
    try:
        form = await parser.parse()
    except MultiPartException as error:
        many = f" At most {most} files fit one request." if error.message.startswith("Too many") else ""
        raise Refusal(422, f"the form cannot be read: {error.message}{many}") from None
    except (KeyError, ValueError, LookupError) as error:  # headers of the body that cannot be decoded
        raise Refusal(422, f"the form cannot be read: {type(error).__name__}") from None
    files = [value for value in form.getlist(FIELD) if isinstance(value, UploadFile)]
    return [Upload((file.filename or "")[:NAME_LENGTH] or None, await file.read()) for file in files]


def measure(content: bytes, limits: Limits) -> int:
    """How many pixels the header announces; Refusal 413, 415 or 422 where it must not or cannot be decoded."""
    if _has_second_page(content):
        raise Refusal(422, "more than one page in one file. Save each page as a file of its own.")
    try:
        height, width = images.size(content, max_pixels=limits.side**2)
    except ImageError as error:
        raise refusal(error) from None
    if height * width > limits.pixels or max(height, width) > limits.side:
        most = f"at most {limits.pixels / 1e6:g} megapixels and {limits.side:,} pixels a side are taken"
        raise Refusal(413, f"{width} × {height} pixels; {most}")
    return height * width


def _has_second_page(content: bytes) -> bool:
    """Whether the first directory of a TIFF names a second.

    Pillow counts pages in a time that grows with their square: ten megabytes of empty ones would keep it busy for
    minutes, and nothing can stop it.
    """
    if content[:2] not in (b"II", b"MM"):
        return False
    order, big = "<" if content[:2] == b"II" else ">", content[2:3] == b"+"
    count, entry, link = ("Q", 20, "Q") if big else ("H", 12, "I")
    try:
        (first,) = struct.unpack_from(order + link, content, 8 if big else 4)
        (entries,) = struct.unpack_from(order + count, content, first)
        (second,) = struct.unpack_from(order + link, content, first + struct.calcsize("=" + count) + entry * entries)
    except (struct.error, OverflowError):
        return False  # cut off, which Pillow will find
    return bool(second)


def decode(content: bytes, limits: Limits) -> NDArray[np.uint8]:
    """RGB uint8 (H, W, 3) of a picture that `measure` has let through."""
    try:
        return images.load(content, max_pixels=limits.pixels)
    except ImageError as error:
        raise refusal(error) from None


def refusal(error: ImageError) -> Refusal:
    """415 where the bytes are no image, 413 where it is too large, 422 where it is one that cannot be used."""
    detail = f"{error.reason}. {error.remedy}".strip()
    if isinstance(error.__cause__, UnidentifiedImageError):
        return Refusal(415, detail)
    return Refusal(413 if isinstance(error.__cause__, Image.DecompressionBombError) else 422, detail)
