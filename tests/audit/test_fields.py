"""Receptive fields by gradient: within what the layers allow, and around the cell."""

from __future__ import annotations

import numpy as np

from fcdd.audit import fields, recurring
from fcdd.audit.findings import Severity

from .conftest import Case


def test_the_gradient_lies_around_the_cell(plain: Case) -> None:
    evidence = plain.evidence
    height, width = evidence.cells.shape[1:]
    row, column = height // 2, width // 4
    gradient = fields.effective(evidence, 0, row * width + column)
    rows, columns = (np.arange(n) for n in gradient.shape)
    centre = (gradient.sum(1) @ rows / gradient.sum(), gradient.sum(0) @ columns / gradient.sum())
    grid = evidence.detector.grid
    assert abs(centre[0] - (grid.start + grid.stride * row)) < 12
    assert abs(centre[1] - (grid.start + grid.stride * column)) < 12


def test_pixels_outside_the_outline_hardly_move_the_cell(plain: Case) -> None:
    evidence = plain.evidence
    index, place = int(evidence.bad[0]), int(evidence.hot[evidence.bad[0], 0])
    seen = fields.outline(fields.effective(evidence, index, place))
    random = np.random.default_rng(0)
    noise = random.normal(0, 3, (*seen.shape, 3)) * random.choice([-1, 1], 3)
    moved = []
    for where in (seen, ~seen):
        share = np.sqrt(seen.sum() / where.sum())  # as much change in all, over however many pixels
        image = np.clip(evidence.inputs[index] + share * noise * where[..., None], 0, 255).astype(np.uint8)
        cells = evidence.detector.predict(image).cells
        moved.append(abs(float(cells.flat[place] - evidence.cells[index].flat[place])))
    assert moved[0] > 2 * moved[1]


def test_the_outline_holds_most_of_the_gradient() -> None:
    gradient = np.zeros((20, 20), np.float32)
    gradient[4:8, 4:8] = 1
    gradient[15, 15] = 0.5
    assert fields.outline(gradient).sum() == 16


def test_a_flagged_cue_is_shown_with_its_field(stamped: Case, plain: Case) -> None:
    flagged = recurring.answer(stamped.evidence, quiet=True)
    (finding,) = fields.answer(stamped.evidence, flagged)
    assert finding.figures["within_the_place"] > 0.5
    assert finding.severity is Severity.NONE
    (finding,) = fields.answer(plain.evidence, [])
    assert "hottest cell" in finding.title
