"""Deletion and insertion on a real detector: the hottest cells beat cells at random."""

from __future__ import annotations

import numpy as np

from fcdd.audit.faithfulness import _mixed, answer, verdict
from fcdd.audit.findings import Severity

from .conftest import Case, only


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
    assert "would be noticed" in finding.power


def test_three_defects_are_too_few_to_doubt_the_heatmaps(plain: Case) -> None:
    few = only(plain.evidence, np.concatenate([plain.evidence.good, plain.evidence.bad[:3]]))
    (finding,) = answer(few, quiet=True)
    assert finding.severity is Severity.UNKNOWN
    assert "Do not read" not in finding.remedy
    assert finding.power == "3 images are fewer than the 5 this question needs."


def test_a_verdict_against_the_heat_takes_images_that_would_have_shown_an_advantage() -> None:
    random = np.random.default_rng(0)
    noise = random.normal(size=(8, 2))
    assert verdict(1 + 0.1 * noise)[0] is Severity.NONE
    assert verdict(np.array([1.0, 0.0]) + 0.05 * noise)[0] is Severity.LOW
    assert verdict(0.05 * noise)[0] is Severity.MEDIUM
    assert verdict(2 * noise)[0] is Severity.UNKNOWN
    assert verdict(np.array([5.0, 0.0]) + noise)[0] is Severity.UNKNOWN
