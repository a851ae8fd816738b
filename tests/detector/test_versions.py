"""Versions of a calibration: each change is one more, undo goes back, nothing is lost on the way through JSON."""

from __future__ import annotations

import json

import pytest

from fcdd.detector.calibration import Calibration
from fcdd.detector.versions import KEPT, Versions
from fcdd.errors import CalibrationError, FcddError


def calibration(above: float | None = None) -> Calibration:
    return Calibration(tuple(range(1, 200)), reject_above=above)


def test_a_change_is_a_version_and_undo_goes_back() -> None:
    one = Versions.first(calibration())
    assert one.with_active(calibration()) is one
    three = one.with_active(calibration(5)).with_active(calibration(6))
    assert (three.active.number, three.active.before) == (3, 2)
    back = three.undone()
    assert (back.active.number, back.active.calibration.reject_above) == (2, 5)
    four = back.with_active(calibration(7))
    assert (four.active.number, four.active.before) == (4, 2)
    assert {version.number for version in four.others} == {1, 2, 3}
    first = four.undone().undone()
    assert first.active.calibration == calibration()
    with pytest.raises(CalibrationError, match="version 1 is the first"):
        first.undone()


def test_json_keeps_all_and_files_without_versions_have_the_first() -> None:
    three = Versions.first(calibration()).with_active(calibration(5)).with_active(calibration(6))
    data = json.loads(json.dumps(three.to_dict()))
    assert Versions.from_dict(three.active.calibration, data) == three
    assert Versions.from_dict(calibration(), None) == Versions.first(calibration())
    with pytest.raises(FcddError, match="each another"):
        Versions.from_dict(calibration(), {**data, "number": 1})


def test_the_oldest_are_dropped_when_there_are_many() -> None:
    versions = Versions.first(calibration())
    for above in range(KEPT + 10):
        versions = versions.with_active(calibration(above))
    assert len(versions.others) == KEPT
    assert versions.active.number == KEPT + 11
    for _ in range(KEPT):
        versions = versions.undone()
    with pytest.raises(CalibrationError):
        versions.undone()
