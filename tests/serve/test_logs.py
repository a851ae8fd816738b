"""Lines that machines can read and clients cannot forge."""

from __future__ import annotations

import io
import json
import logging

import pytest

from fcdd.serve import logs


@pytest.fixture
def stream() -> io.StringIO:
    stream = io.StringIO()
    logs.write_to(stream, "info")
    return stream


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
