"""Lines that machines can read and clients cannot forge."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Iterator

import pytest

from fcdd.serve import logs


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    with logs.written_to(stream, "info"):
        yield stream


def test_one_object_a_line(stream: io.StringIO) -> None:
    logs.log("request", path='/a\n{"event": "forged"}', status=200)
    logs.log("hidden", level=logging.DEBUG)
    (line,) = stream.getvalue().splitlines()
    told = json.loads(line)
    assert told["event"] == "request"
    assert told["path"] == '/a\n{"event": "forged"}'
    assert (told["level"], told["status"]) == ("info", 200)
    assert told["time"].endswith("+00:00")


def test_a_failure_keeps_its_traceback(stream: io.StringIO) -> None:
    try:
        raise ValueError("why")
    except ValueError as error:
        logs.log("failure", level=logging.ERROR, failure=error)
    told = json.loads(stream.getvalue())
    assert "ValueError: why" in told["error"]
    assert "test_logs.py" in told["error"]


def test_libraries_write_in_the_same_form(stream: io.StringIO) -> None:
    logging.getLogger("asyncio").error("socket.accept() out of system resource")
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("odd", UserWarning, stacklevel=1)
    levels = [json.loads(line)["level"] for line in stream.getvalue().splitlines()]
    assert levels == ["error", "warning", "warning"]


def test_other_programs_find_their_logging_as_they_left_it() -> None:
    loggers = [logging.getLogger(name) for name in ("", "fcdd.serve", *logs.OTHERS)]
    before = [(one.level, list(one.handlers), one.propagate) for one in loggers]
    shown = warnings.showwarning
    with logs.written_to(io.StringIO(), "debug"):
        pass
    assert [(one.level, list(one.handlers), one.propagate) for one in loggers] == before
    assert warnings.showwarning is shown
