"""Whether the images that a model was sent of late still look as its calibration images did."""

from __future__ import annotations

from collections import deque

from fcdd.detector import looks
from fcdd.detector.judge import Judge

WINDOW = 32  # images that are compared
EVERY = 8  # images after which they are compared again


class Recent:
    """The looks of the last images of one model; its methods are called in the event loop's thread.

    A window is compared four times while it passes, so each time a quarter of the level is asked for: the chance of a
    false alarm in a window stays the level of `fcdd.detector.looks`.
    """

    def __init__(self, model: Judge) -> None:
        self._model = model
        self._seen: deque[looks.Floats] = deque(maxlen=WINDOW)
        self._since = 0
        self.changes: tuple[looks.Change, ...] = ()
        self.warning: str | None = None  # what differs and what to do about it

    def add(self, seen: looks.Floats) -> bool:
        """Take note of one image; whether the images were compared anew."""
        self._seen.append(seen)
        self._since += 1
        if len(self._seen) < WINDOW or self._since < EVERY:
            return False
        self._since = 0
        found = self._model.looked(list(self._seen), looks.LEVEL * EVERY / WINDOW)
        self.changes = found.changes if found else ()
        self.warning = (found.told("The last") or None) if found else None
        return True
