"""Progress: a bar on a terminal, a line now and then in a log, nothing where nobody asked."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import subprocess
import sys
import time

import pytest

from fcdd import progress
from fcdd.progress import bar, only_errors_of

LINE = re.compile(r"reading: (\d+)/(\d+) ([\d.e+]+)/s(.*), (\d+) s left")
EVERY = 0.1


@pytest.fixture(autouse=True)
def _a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """No terminal, whatever the surroundings claim, and lines often enough for a test."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(progress, "LINE_EVERY", EVERY)


def test_a_log_gets_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    begun = time.monotonic()
    with bar("reading", 1000) as shown:
        for _ in range(1000):
            shown.advance(1, "loss 0.5")
            time.sleep(0.0004)
    seconds = time.monotonic() - begun
    told = capsys.readouterr()
    lines = [LINE.fullmatch(line) for line in told.err.splitlines()]
    assert all(lines)
    assert 1 <= len(lines) <= seconds / EVERY
    done = [int(line[1]) for line in lines if line]
    assert done == sorted(done)
    assert all((line[2], line[4]) == ("1000", " loss 0.5") for line in lines if line)
    assert told.out == ""


def test_short_work_says_nothing_in_a_log(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY", 60.0)
    with bar("reading", 3) as shown:
        for _ in range(3):
            shown.advance(1)
    assert capsys.readouterr() == ("", "")


def test_quiet_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with bar("reading", 2, quiet=True) as shown:
        for _ in range(2):
            time.sleep(2 * EVERY)
            shown.advance(1, "note")
    assert shown.done == 2
    assert capsys.readouterr() == ("", "")


def test_resumed_items_do_not_count_for_the_rate(capsys: pytest.CaptureFixture[str]) -> None:
    begun = time.monotonic()
    with bar("reading", 1000, done=900) as shown:
        time.sleep(2 * EVERY)
        shown.advance(1)
    seconds = time.monotonic() - begun
    found = LINE.fullmatch(capsys.readouterr().err.strip())
    assert found
    assert (found[1], found[2]) == ("901", "1000")
    rate = float(found[3])
    assert 1 / seconds - 0.01 <= rate <= 1 / (2 * EVERY) + 0.1
    assert float(found[5]) == pytest.approx(99 / rate, rel=0.02, abs=1)


def everything(terminal: int) -> str:
    """What was written to a terminal whose other side is closed: its end is an error on Linux, nothing elsewhere."""
    read = b""
    with open(terminal, "rb", buffering=0) as file, contextlib.suppress(OSError):
        while part := file.read(1 << 16):
            read += part
    return read.decode()


def test_a_terminal_gets_a_bar_and_stdout_stays_clean() -> None:
    code = (
        "from fcdd.progress import bar\n"
        "with bar('reading', 4, done=1) as shown:\n"
        "    for _ in range(3): shown.advance(1, 'loss 0.5')\n"
        "print('result')"
    )
    ours, theirs = pytest.importorskip("pty").openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    told = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=theirs, env=environment)
    os.close(theirs)
    shown = everything(ours)
    assert told.returncode == 0
    assert told.stdout == b"result\n"
    assert "reading" in shown
    assert "100%" in shown
    assert "loss 0.5" in shown


def test_a_logger_is_quiet_for_the_block_only() -> None:
    logger = logging.getLogger("fcdd.test")
    logger.setLevel(logging.INFO)
    with only_errors_of("fcdd.test"):
        assert not logger.isEnabledFor(logging.WARNING)
    assert logger.level == logging.INFO
