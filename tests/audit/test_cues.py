"""Planted marks: drawn where they should be, and their effect measured on the real detector."""

from __future__ import annotations

import numpy as np
import pytest

from fcdd.audit.cues import MARKS, _cells_near, answer
from fcdd.audit.findings import Severity

from .conftest import Case


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("place", [(0.0, 0.0), (1.0, 1.0), (0.5, 0.5)])
def test_a_mark_changes_pixels_in_its_box_alone(mark: str, place: tuple[float, float]) -> None:
    image = np.full((120, 200, 3), 90, np.uint8)
    marked, mask = MARKS[mark](image, place)
    changed = (marked != image).any(2)
    assert changed.any()
    assert not changed[~mask].any()
    assert mask.mean() < 0.25
    rows, columns = (np.flatnonzero(mask.any(axis)) for axis in (1, 0))
    if place == (0.0, 0.0):
        assert (rows[0], columns[0]) == (0, 0)
    if place == (1.0, 1.0):
        assert (rows[-1], columns[-1]) == (119, 199)


def test_cells_near_a_mask() -> None:
    mask = np.zeros((64, 64), np.bool_)
    mask[32:34, 32:34] = True
    near = _cells_near(mask, (8, 8), reach=1)
    assert near.sum() == 9
    assert near[3:6, 3:6].all()


def test_marks_move_the_score_and_the_heat_goes_there(stamped: Case) -> None:
    found = answer(stamped.evidence, quiet=True)
    assert len(found) == len(MARKS)
    by_name = {finding.title.split(" at ")[0].split(" in ")[0]: finding for finding in found}
    stamp = by_name["A time stamp"]
    assert stamp.figures["shift_low"] > 0
    assert stamp.figures["heat_on_mark"] > 0.5
    assert all(finding.severity in (Severity.LOW, Severity.NONE) for finding in found)
    assert all("With 10 good images" in finding.power for finding in found)
