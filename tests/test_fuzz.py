"""Files made up by Hypothesis: the readers answer with a result or a typed error. FCDD_FUZZ sets how many are made."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "fuzz.py"
spec = importlib.util.spec_from_file_location("fuzz", SCRIPT)
assert spec is not None
assert spec.loader is not None
script = importlib.util.module_from_spec(spec)
spec.loader.exec_module(script)

EXAMPLES = int(os.environ.get("FCDD_FUZZ", "150"))  # some seconds each


@pytest.mark.parametrize("name", script.TARGETS)
def test_readers_answer_with_a_result_or_a_typed_error(name: str) -> None:
    read, refused = script.fuzz(name, EXAMPLES)
    assert read + refused >= EXAMPLES
    assert read > 0
    assert refused > 0
