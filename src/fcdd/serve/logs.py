"""Logs as JSON lines: one object a line, for people with jq and for collectors."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TextIO

FIELDS = "fields"  # attribute of a record with what else is known
OTHERS = {"uvicorn.error", "asyncio", "py.warnings"}  # loggers of libraries that write in the server's name
logger = logging.getLogger("fcdd.serve")


class JsonLines(logging.Formatter):
    """`{"time", "level", "event", …}`; everything is escaped, so that no client can forge a line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, FIELDS, {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def log(event: str, *, level: int = logging.INFO, failure: BaseException | None = None, **fields: object) -> None:
    """Write one line."""
    logger.log(level, event, extra={FIELDS: fields}, exc_info=failure)


@contextmanager
def written_to(stream: TextIO, level: str) -> Iterator[None]:
    """Within the block all lines of this server and of its libraries go to `stream`, from `level` up."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    chosen = [logger, *map(logging.getLogger, sorted(OTHERS))]
    before = [(one, one.handlers, one.propagate, one.level) for one in chosen]
    logging.captureWarnings(True)
    for one in chosen:
        one.handlers, one.propagate = [handler], False
        one.setLevel(level.upper())
    try:
        yield
    finally:
        logging.captureWarnings(False)
        for one, handlers, propagate, number in before:
            one.handlers, one.propagate = handlers, propagate
            one.setLevel(number)
