"""Connections that cannot be held open for nothing: uvicorn's, with limits on their number, time and cost."""

from __future__ import annotations

import asyncio
import time
from typing import cast

from uvicorn.protocols.http.h11_impl import H11Protocol

from fcdd.serve.limits import Limits

BURST = 128  # connections beyond the limit that are let in before others had to go
GRACE = 0.1  # seconds until then: the request of a new connection may not have been read yet
RECEIVED_AT_ONCE = 16_384  # bytes of one connection that are parsed before others have their turn
PARSING_SECONDS = 0.2  # of CPU time for one request: a body in chunks of one byte is slow to take apart
PARSING_BYTES = 10_000_000  # a second beyond that; usual bodies come twenty times as fast
ANSWER_SECONDS = 30.0  # for a client to take its answer
STOPPING_SECONDS = 5.0  # for an upload to end when the server is told to stop
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"


class Connection(H11Protocol):
    """One client's connection.

    Without a request it lasts as long as a header may take, or as a kept connection may idle; with one as long as
    upload, computation and answer may take together. Where there are too many, the one that has waited longest for
    a request gives way to the new one.
    """

    limits: Limits  # set by `limited`
    _deadline: asyncio.TimerHandle | None = None
    _idle = False  # kept open after an answer, and nothing has come since
    _parsed = 0  # bytes of the current request
    _spent = 0.0  # CPU seconds of parsing them
    since = 0.0  # when it began to wait

    @property
    def waiting(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.max_size = RECEIVED_AT_ONCE  # type: ignore[attr-defined]
        self._wait(self.limits.header_seconds)
        over = len(self.connections) - self.limits.connections
        if over > BURST:
            self._make_room()
        elif over > 0:
            self.loop.call_later(GRACE, self._make_room)

    def _make_room(self) -> None:
        """Cut the connection that has waited longest; where none waits, this one is told to come back."""
        over = len(self.connections) - self.limits.connections
        others = (cast(Connection, one) for one in self.connections if one is not self)
        longest = min((one for one in others if one.waiting), key=lambda one: one.since, default=None)
        if over > 0 and longest is not None:
            longest.transport.abort()
            self.connections.discard(longest)
        elif over > BURST:
            self.transport.write(BUSY)
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_in(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        begun = time.thread_time()
        super().data_received(data)
        self._spent += time.thread_time() - begun
        self._parsed += len(data)
        if self._spent > PARSING_SECONDS + self._parsed / PARSING_BYTES:
            self.transport.abort()
        elif not self.waiting:
            if self.since:
                self.since = 0.0
                self._end_in(self.limits.upload_seconds + self.limits.seconds + ANSWER_SECONDS)
        elif self._idle:
            self._wait(self.limits.header_seconds)

    def on_response_complete(self) -> None:
        self._parsed, self._spent = 0, 0.0
        self._wait(self.limits.idle_seconds + 1)  # uvicorn closes it a second earlier, unless it still sends
        self._idle = True
        super().on_response_complete()

    def shutdown(self) -> None:
        super().shutdown()
        if not self.waiting and self.cycle.more_body:
            self._end_in(STOPPING_SECONDS)

    def _wait(self, seconds: float) -> None:
        self._idle = False
        self.since = self.loop.time()
        self._end_in(seconds)

    def _end_in(self, seconds: float | None) -> None:
        """Cut the connection after this time, in place of what was set before."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)


def limited(limits: Limits) -> type[Connection]:
    """The connections of a server with these limits."""
    return type("LimitedConnection", (Connection,), {"limits": limits})
