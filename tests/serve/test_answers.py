"""What a model tells of itself when its threshold was set from defects."""

from __future__ import annotations

from pathlib import Path

from fcdd.detector.runtime import Runtime
from fcdd.serve import answers


def test_a_threshold_set_by_hand_comes_without_a_promise(plate_model: Path) -> None:
    runtime = Runtime(plate_model, threads=1)
    promised = answers.detail("plate", runtime)
    assert promised.guarantee
    assert promised.guarantee.level == runtime.calibration.reject
    runtime.reject_above(123.0)
    by_hand = answers.detail("plate", runtime)
    assert by_hand.reject_above == 123.0
    assert by_hand.guarantee is None
