"""Recurring cues: found where planted, with the images that carry them, and not where there is none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fcdd.audit.findings import Severity
from fcdd.audit.places import fewest_carriers, recurrences
from fcdd.audit.recurring import answer, cue_of, framed

from .conftest import Case, only


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
    assert "10 of 20 anomalous images" in finding.sentence
    assert finding.remedy
    assert len(finding.images) == 5


def test_defects_of_the_same_types_without_a_stamp_are_no_cue(plain: Case) -> None:
    assert recurrences(plain.evidence) == []
    (finding,) = answer(plain.evidence, quiet=True)
    assert finding.severity is Severity.NONE
    assert f"at least {fewest_carriers(plain.evidence)} of the anomalous ones" in finding.power


def test_fewer_carriers_than_said_are_missed_and_as_many_are_found(stamped: Case) -> None:
    needed = fewest_carriers(stamped.evidence)
    assert needed is not None
    (found,) = recurrences(stamped.evidence)
    plain = np.setdiff1d(stamped.evidence.bad, found.carriers)
    for carriers, cues in ((needed + 1, 1), (needed - 2, 0)):  # the number of seeds, and with it the need, varies a bit
        few = only(stamped.evidence, np.concatenate([stamped.evidence.good, plain, found.carriers[:carriers]]))
        assert len(recurrences(few)) == cues


def test_three_defects_are_too_few_to_say_and_none_is_said_too(stamped: Case) -> None:
    for count in (3, 0):
        few = only(stamped.evidence, np.concatenate([stamped.evidence.good, stamped.evidence.bad[:count]]))
        assert fewest_carriers(few) is None
        (finding,) = answer(few, quiet=True)
        assert finding.severity is Severity.UNKNOWN
        assert f"There are {count} anomalous" in finding.sentence


def test_what_recurs_all_over_the_image_is_what_it_shows_and_no_cue(stamped: Case) -> None:
    evidence = stamped.evidence
    looks = evidence.looks.copy()
    random = np.random.default_rng(0).normal(size=looks.shape[1:])
    looks[recurrences(evidence)[0].carriers] = random / np.linalg.norm(random, axis=1, keepdims=True)
    assert recurrences(replace(evidence, looks=looks)) == []


def test_the_frame_surrounds_its_box_and_leaves_it_alone() -> None:
    image = np.zeros((40, 40, 3), np.uint8)
    shown = framed(image, (slice(10, 20), slice(15, 30)))
    assert shown[8, 20].tolist() == [0, 230, 255]
    assert not shown[10:20, 15:30].any()
