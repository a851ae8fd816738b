"""Heat in the margins: found in good and in anomalous images, with a region of interest that leaves it out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fcdd.audit import zones
from fcdd.audit.evidence import Evidence
from fcdd.audit.findings import Severity

from .conftest import Case, only


def with_cells(evidence: Evidence, cells: np.ndarray) -> Evidence:
    return replace(evidence, cells=cells.astype(np.float32))


def test_zones_lie_where_their_names_say(plain: Case) -> None:
    found = zones.zones(plain.evidence)
    border, corners = found["border"], found["corners"]
    assert border[0].all()
    assert border[:, -1].all()
    assert not border[8, 8]
    assert corners[0, 0]
    assert corners[-1, -1]
    assert not corners[0, 8]


def on_white(evidence: Evidence) -> Evidence:
    """Dark parts in the middle of a white background."""
    inputs = np.full_like(evidence.inputs, 250)
    inputs[:, 32:96, 32:96] = 60
    return replace(evidence, inputs=inputs)


def test_the_background_of_a_part_is_what_looks_like_the_rim(plain: Case) -> None:
    background = zones.zones(on_white(plain.evidence))["background"]
    assert background[0].all()
    assert not background[6:10, 6:10].any()
    flat = replace(plain.evidence, inputs=np.full_like(plain.evidence.inputs, 100))
    assert "background" not in zones.zones(flat)


def test_score_from_the_corners_is_reported(plain: Case) -> None:
    cells = np.full_like(plain.evidence.cells, 0.1)
    cells[:, 0, 0] = cells[:, -1, -1] = cells[:, 0, -1] = 9
    finding = zones.answer(with_cells(plain.evidence, cells))
    assert finding.severity is Severity.MEDIUM
    assert finding.figures["corners_anomalous"] > 0.9
    assert "--roi" in finding.remedy
    random = np.random.default_rng(0).random(cells.shape)
    assert zones.answer(with_cells(plain.evidence, random)).severity is Severity.NONE


def test_hot_corners_of_good_images_are_not_in_order_though_defects_are_hot_elsewhere(plain: Case) -> None:
    evidence = plain.evidence
    cells = np.random.default_rng(0).random(evidence.cells.shape)
    cells[evidence.bad, 6:8, 6:8] += 20
    cells[np.ix_(evidence.good, [0, -1], [0, -1])] += 5
    finding = zones.answer(with_cells(evidence, cells))
    assert finding.severity is Severity.LOW
    assert "of good images comes from the" in finding.title
    assert finding.region is not None
    assert not finding.region[[0, 0, -1, -1], [0, -1, 0, -1]].any()


def test_the_offered_region_keeps_the_part_with_its_edge_and_leaves_the_background_out(plain: Case) -> None:
    evidence = on_white(plain.evidence)
    cells = np.random.default_rng(0).random(evidence.cells.shape)
    cells[:, 2, 4:9] += 5  # in the background, away from the border
    finding = zones.answer(with_cells(evidence, cells))
    assert finding.title == "Most of the score of anomalous images comes from the background"
    assert finding.region is not None
    assert finding.region.shape == evidence.detector.grid.shape
    assert finding.region[32:96, 32:96].all()
    assert finding.region[26, 64]  # a cell around the part stays in
    assert not finding.region[:16].any()
    assert evidence.detector.grid.inside(finding.region).any()


def test_three_defects_are_too_few_to_say(plain: Case) -> None:
    few = only(plain.evidence, np.concatenate([plain.evidence.good, plain.evidence.bad[:3]]))
    finding = zones.answer(with_cells(few, np.random.default_rng(0).random(few.cells.shape)))
    assert finding.severity is Severity.UNKNOWN
    assert "anomalous images" in finding.title
    assert "3 anomalous images are fewer than the 5" in finding.power
    assert finding.region is None


def test_every_zone_says_what_would_have_been_noticed(plain: Case) -> None:
    evidence = with_cells(plain.evidence, np.random.default_rng(0).random(plain.evidence.cells.shape))
    for one in zones.held_by(evidence):
        assert one.told
        assert zones.limit_of(one.area) < one.smallest <= zones.NOTICED
        assert f"{one.zone} from {one.smallest:.0%}" in zones.answer(evidence).power
