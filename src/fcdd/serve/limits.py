"""What a server takes on, and how it says no."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from fcdd.errors import FcddError

MEGA = 1_000_000
LONGEST = 3600.0  # seconds that any of the times may be set to
PATIENCE = 2.0  # seconds that an upload has before it may have to give way to another request


@dataclass(frozen=True)
class Limits:
    """Bounds of what one request and all requests together may cost."""

    queue: int = 64  # images in the server, from the first byte of a request to its answer
    received: int = 192 * MEGA  # bytes of all bodies that are in memory
    batch: int = 8  # images that run through the network together
    images: int = 32  # in one batch request
    body: int = 32 * MEGA  # bytes of a request
    pixels: int = 25 * MEGA  # of one image
    side: int = 16_384  # pixels: an image of one row and millions of columns would cost far more than its area
    seconds: float = 20.0  # from the last byte of a request to its answer
    upload_seconds: float = 30.0  # from the first byte of a body to its last
    header_seconds: float = 10.0  # from the first byte of a request to the end of its header
    idle_seconds: float = 30.0  # between two requests of a connection
    connections: int = 512

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (math.isfinite(value) and value > 0):
                raise FcddError(f"limit {name}: must be above zero, got {value:g}")
            if name.endswith("seconds") and value > LONGEST:
                raise FcddError(f"limit {name}: must be at most {LONGEST:g}, got {value:g}")
        if self.images > self.queue:
            raise FcddError(f"limit images: {self.images} in one request would never fit a queue of {self.queue}")
        if self.body > self.received:
            raise FcddError(f"limit body: {self.body} bytes of one request exceed the {self.received} of all together")


class Refusal(Exception):
    """A request that gets a problem document (RFC 9457) instead of its answer."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})


@dataclass(eq=False)
class Entry:
    """What one request holds of the server's room."""

    admission: Admission
    images: int = 0
    received: int = 0  # bytes
    begun: float = field(default_factory=time.monotonic)
    end_upload: Callable[[], None] | None = None  # while its body comes in
    displaced: bool = False  # its upload had to give way

    def add(self, images: int = 0, received: int = 0) -> None:
        """Take more room; Refusal 503 where there is not enough, and then nothing is taken."""
        self.admission.make_room(images, received, self)
        self.images += images
        self.received += received

    def give_way(self) -> None:
        """End the upload."""
        assert self.end_upload
        self.displaced = True
        self.end_upload()

    def rate(self) -> float:
        """Bytes a second since the request began."""
        return self.received / max(time.monotonic() - self.begun, 1e-3)


@dataclass
class Admission:
    """Counts what is in the server and refuses with 503 what is too much; used by the event loop's thread alone.

    Where there is no room, the slowest upload gives way if it has had `PATIENCE` seconds: clients that send a body
    byte by byte cannot keep the others out.
    """

    limits: Limits
    entries: set[Entry] = field(default_factory=set)
    _pace: float = field(default=0.1, repr=False)  # seconds an image, a moving mean

    @property
    def images(self) -> int:
        return sum(entry.images for entry in self.entries)

    @property
    def received(self) -> int:
        """Bytes of bodies."""
        return sum(entry.received for entry in self.entries)

    @contextmanager
    def entered(self) -> Iterator[Entry]:
        """Room for a request with one image, before its body is read; given back at the end of the block."""
        entry = Entry(self)
        entry.add(images=1)
        self.entries.add(entry)
        try:
            yield entry
        finally:
            share = (time.monotonic() - entry.begun) / max(self.images, 1)
            self._pace += 0.1 * (share - self._pace)
            self.entries.discard(entry)

    def make_room(self, images: int, received: int, asking: Entry) -> None:
        """Refusal 503 where this much does not fit even after slow uploads gave way."""
        while self.images + images > self.limits.queue or self.received + received > self.limits.received:
            slowest = self._slowest(asking)
            if slowest is None:
                wait = self.retry_after()
                raise Refusal(503, f"the queue is full; try again in {wait} s", {"Retry-After": str(wait)})
            slowest.give_way()
            self.entries.discard(slowest)

    def _slowest(self, asking: Entry) -> Entry | None:
        late = time.monotonic() - PATIENCE
        slow = [one for one in self.entries if one.end_upload and one.begun < late and one is not asking]
        return min(slow, key=Entry.rate, default=None)

    def retry_after(self) -> int:
        """Whole seconds until about half of what is in the server is answered, 1 … 30."""
        return min(max(math.ceil(self._pace * self.images / 2), 1), 30)
