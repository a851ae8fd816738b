"""A request's body, bounded in bytes and time and kept in memory only; what is in it, a decoder finds out."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from fastapi import Request

from fcdd.serve.decoders import Decoders, Upload
from fcdd.serve.limits import Entry, Limits, Refusal

MULTIPART, RAW = "multipart/form-data", "application/octet-stream"
CLOSE = {"Connection": "close"}  # what is left of a body would be read as the next request


@dataclass(frozen=True)
class Body:
    """A complete body and the content type that its client gave."""

    content_type: str
    content: bytes

    async def uploads(self, decoders: Decoders, most: int) -> list[Upload]:
        """The one image of a raw body, or the 1 … `most` images of a multipart body; Refusal 422 or 504."""
        if _media(self.content_type) != MULTIPART:
            return [Upload(None, self.content)]
        return await decoders.form(self.content_type, self.content, most)


def _media(content_type: str) -> str:
    """The content type without its parameters."""
    return content_type.partition(";")[0].strip().lower()


async def receive(request: Request, limits: Limits, entry: Entry) -> Body:
    """The body of a request that was let in as `entry`; Refusal 408, 413, 415 or 503."""
    content_type = request.headers.get("content-type", RAW)
    kind = _media(content_type)
    if kind != MULTIPART and kind != RAW and not kind.startswith("image/"):
        raise Refusal(415, f"content type {kind[:80]!r}: send image/*, {RAW} or {MULTIPART}")
    try:
        async with asyncio.timeout(limits.upload_seconds) as deadline:
            entry.end_upload = lambda: deadline.reschedule(0)
            content = await _content(request, limits.body, entry)
            entry.end_upload = None
    except TimeoutError:
        late = "the server is full and this was the slowest upload"
        why = late if entry.displaced else f"no complete body within {limits.upload_seconds:g} s"
        raise Refusal(408, why, CLOSE) from None
    return Body(content_type, content)


async def _content(request: Request, limit: int, entry: Entry) -> bytes:
    declared = request.headers.get("content-length", "0")
    too_large = Refusal(413, f"more than {limit:,} bytes", CLOSE)
    if declared.isdecimal() and int(declared) > limit:
        raise too_large
    body = bytearray()
    async for chunk in request.stream():
        if len(body) + len(chunk) > limit:
            raise too_large
        entry.add(received=len(chunk))
        body += chunk
    return bytes(body)
