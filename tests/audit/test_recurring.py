"""Recurring cues: found where planted, with the pictures that carry them, and not where there is none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fcdd.audit.findings import Severity
from fcdd.audit.recurring import answer, cue_of, framed, recurrences

from .conftest import Case


def test_a_planted_stamp_is_found_with_exactly_its_carriers(stamped: Case) -> None:
    evidence = stamped.evidence
    found = recurrences(evidence)
    assert len(found) == 1
    carriers = {evidence.paths[i].name for i in found[0].carriers}
    assert carriers == {path.name for path in evidence.paths if "stamped" in path.name}
    cue = cue_of(evidence, found[0])
    left, top, right, bottom = cue.place
    assert left < 0.1
    assert top > 0.6
    assert right < 0.95
    assert bottom == 1
    assert len(cue.patches) == len(carriers)


def test_the_stamp_is_a_high_finding_whose_effect_is_real(stamped: Case) -> None:
    (finding,) = answer(stamped.evidence, quiet=True)
    assert finding.severity is Severity.HIGH
    figures = finding.figures
    assert figures["shift_low"] > 0
    assert figures["shift"] > 0.1 * stamped.evidence.gap
    assert figures["drop_without_it"] > 0
    assert "10 of 20 anomalous pictures" in finding.sentence
    assert finding.remedy
    assert len(finding.pictures) == 5


def test_defects_of_the_same_types_without_a_stamp_are_no_cue(plain: Case) -> None:
    assert recurrences(plain.evidence) == []
    (finding,) = answer(plain.evidence, quiet=True)
    assert finding.severity is Severity.NONE


def test_what_recurs_all_over_the_picture_is_what_it_shows_and_no_cue(stamped: Case) -> None:
    evidence = stamped.evidence
    looks = evidence.looks.copy()
    random = np.random.default_rng(0).normal(size=looks.shape[1:])
    looks[recurrences(evidence)[0].carriers] = random / np.linalg.norm(random, axis=1, keepdims=True)
    assert recurrences(replace(evidence, looks=looks)) == []


def test_the_frame_surrounds_its_box_and_leaves_it_alone() -> None:
    picture = np.zeros((40, 40, 3), np.uint8)
    shown = framed(picture, (slice(10, 20), slice(15, 30)))
    assert shown[8, 20].tolist() == [0, 230, 255]
    assert not shown[10:20, 15:30].any()
