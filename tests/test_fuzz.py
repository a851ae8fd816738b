"""Files made up by Hypothesis: the readers answer with a result or a typed error. FCDD_FUZZ sets for how long."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "fuzz.py"
spec = importlib.util.spec_from_file_location("fuzz", SCRIPT)
assert spec is not None
assert spec.loader is not None
script = importlib.util.module_from_spec(spec)
sys.modules["fuzz"] = script  # dataclasses look their module up
spec.loader.exec_module(script)

SECONDS = float(os.environ.get("FCDD_FUZZ", "30"))  # for each reader


@pytest.mark.parametrize("reader", script.READERS)
def test_readers_answer_with_a_result_or_a_typed_error(reader: str) -> None:
    tally = script.fuzz(reader, SECONDS)
    assert tally.findings == []
    assert tally.read > 0
    assert tally.refused > 0
