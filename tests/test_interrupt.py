"""Ctrl-C and SIGTERM set the event, and handlers are put back afterwards."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from fcdd.interrupt import stop_on_signal


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_sets_the_event_and_nothing_else(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_on_signal() as stop:
        assert not stop.is_set()
        os.kill(os.getpid(), number)
        assert stop.wait(2)
    assert signal.getsignal(number) is before


def test_other_threads_leave_the_handlers_alone() -> None:
    seen: list[object] = []

    def work() -> None:
        with stop_on_signal():
            seen.append(signal.getsignal(signal.SIGINT))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
