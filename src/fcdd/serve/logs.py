"""Logs as JSON lines: one object a line, for people with jq and for collectors."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any, TextIO

FIELDS = "fields"  # attribute of a record with what else is known
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


def write_to(stream: TextIO, level: str) -> None:
    """All lines of this server and of uvicorn go to `stream`, from `level` up."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    for name in ("fcdd.serve", "uvicorn.error"):
        chosen = logging.getLogger(name)
        chosen.handlers, chosen.propagate = [handler], False
        chosen.setLevel(level.upper())
