"""What a server takes on, and how it says no."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from fcdd.errors import FcddError

MEGA = 1_000_000


@dataclass(frozen=True)
class Limits:
    """Bounds of what one request and all requests together may cost."""

    queue: int = 64  # pictures in the server, from the first byte of a request to its answer
    queue_pixels: int = 128 * MEGA  # of all pictures that are decoded: about 7 bytes each with their heatmaps
    batch: int = 8  # pictures that run through the network together
    pictures: int = 32  # in one batch request
    body: int = 32 * MEGA  # bytes of a request
    pixels: int = 25 * MEGA  # of one picture
    side: int = 16_384  # pixels: a picture of one row and millions of columns would cost far more than its area
    seconds: float = 20.0  # from the last byte of a request to its answer
    upload_seconds: float = 30.0  # from the first byte of a request to its last

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value <= 0:
                raise FcddError(f"limit {name}: must be above zero, got {value:g}")
        if self.pictures > self.queue:
            raise FcddError(f"limit pictures: {self.pictures} in one request would never fit a queue of {self.queue}")
        if self.pixels > self.queue_pixels:
            raise FcddError(f"limit pixels: {self.pixels} of one picture exceed the {self.queue_pixels} of the queue")


class Refusal(Exception):
    """A request that gets a problem document (RFC 9457) instead of its answer."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})


@dataclass
class Admission:
    """Counts what is in the server and refuses with 503 what is too much; used by the event loop's thread alone."""

    limits: Limits
    pictures: int = 0
    pixels: int = 0
    refused: int = 0
    _pace: float = field(default=0.1, repr=False)  # seconds a picture, a moving mean

    @contextmanager
    def entered(self) -> Iterator[Entry]:
        """Room for a request with one picture, before its body is read; given back at the end of the block."""
        entry = Entry(self)
        entry.add(pictures=1)
        begun = time.monotonic()
        try:
            yield entry
        finally:
            share = (time.monotonic() - begun) / max(self.pictures, 1)
            self._pace += 0.1 * (share - self._pace)
            self.pictures -= entry.pictures
            self.pixels -= entry.pixels

    def retry_after(self) -> int:
        """Whole seconds until about half of what is in the server is answered, 1 … 30."""
        return min(max(math.ceil(self._pace * self.pictures / 2), 1), 30)


@dataclass
class Entry:
    """What one request holds of the server's room."""

    admission: Admission
    pictures: int = 0
    pixels: int = 0

    def add(self, pictures: int = 0, pixels: int = 0) -> None:
        """Take more room; Refusal 503 where there is not enough, and then nothing is taken."""
        held, limits = self.admission, self.admission.limits
        if held.pictures + pictures > limits.queue or held.pixels + pixels > limits.queue_pixels:
            held.refused += 1
            wait = held.retry_after()
            raise Refusal(503, f"the queue is full; try again in {wait} s", {"Retry-After": str(wait)})
        held.pictures += pictures
        held.pixels += pixels
        self.pictures += pictures
        self.pixels += pixels
