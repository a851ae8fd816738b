"""Where the heat is: zones, the background of a part, and heat that stays put."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fcdd.audit import heat
from fcdd.audit.findings import Severity

from .conftest import Case


def test_zones_lie_where_their_names_say(plain: Case) -> None:
    found = heat.zones(plain.evidence)
    border, corners = found["border"], found["corners"]
    assert border[0].all()
    assert border[:, -1].all()
    assert not border[8, 8]
    assert corners[0, 0]
    assert corners[-1, -1]
    assert not corners[0, 8]


def test_the_background_of_a_part_is_what_looks_like_the_rim(plain: Case) -> None:
    inputs = np.full_like(plain.evidence.inputs, 250)
    inputs[:, 32:96, 32:96] = 60
    background = heat._background(replace(plain.evidence, inputs=inputs))
    assert background is not None
    assert background[0].all()
    assert not background[6:10, 6:10].any()
    assert heat._background(replace(plain.evidence, inputs=np.full_like(inputs, 100))) is None


def test_score_from_the_corners_is_reported(plain: Case) -> None:
    cells = np.full_like(plain.evidence.cells, 0.1)
    cells[:, 0, 0] = cells[:, -1, -1] = cells[:, 0, -1] = 9
    finding = heat._zones(replace(plain.evidence, cells=cells))
    assert finding.severity is Severity.MEDIUM
    assert finding.figures["corners_anomalous"] > 0.9
    cells = np.random.default_rng(0).random(cells.shape, np.float32)
    assert heat._zones(replace(plain.evidence, cells=cells)).severity is Severity.NONE


def test_places_that_are_always_warm_are_found(plain: Case) -> None:
    cells = np.random.default_rng(0).random(plain.evidence.cells.shape, np.float32)
    assert not heat.always_warm(replace(plain.evidence, cells=cells)).any()
    cells[:, 3:5, 3:5] += 1
    evidence = replace(plain.evidence, cells=cells)
    warm = heat.always_warm(evidence)
    assert warm[3:5, 3:5].all()
    assert warm.sum() == 4
    finding = heat._position(evidence)
    assert finding.severity is Severity.LOW
    assert finding.figures["share_good"] > 0.9
