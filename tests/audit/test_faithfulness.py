"""Deletion and insertion on a real detector: the hottest cells beat cells at random."""

from __future__ import annotations

import numpy as np

from fcdd.audit.faithfulness import _mixed, answer
from fcdd.audit.findings import Severity

from .conftest import Case


def test_mixing_replaces_the_cells_and_leaves_the_rest(plain: Case) -> None:
    base, top = plain.evidence.inputs[0], 255 - plain.evidence.inputs[0]
    width = plain.evidence.cells.shape[2]
    mixed = _mixed(base, top, np.array([5 * width + 5, 5 * width + 6]), plain.evidence)
    assert np.array_equal(mixed[43:45, 43:53], top[43:45, 43:53])
    assert np.array_equal(mixed[:36], base[:36])
    assert np.array_equal(mixed[:, 62:], base[:, 62:])


def test_the_hottest_cells_carry_the_score(plain: Case) -> None:
    (finding,) = answer(plain.evidence, quiet=True)
    figures = finding.figures
    assert figures["deletion, hottest first"] < figures["deletion, at random"]
    assert figures["insertion, hottest first"] > figures["insertion, at random"]
    assert finding.severity in (Severity.NONE, Severity.LOW)
    assert "Deletion" in finding.chart
