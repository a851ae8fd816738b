"""Heat that stays put: places that are warm whatever the images show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fcdd.audit import heat
from fcdd.audit.findings import Severity

from .conftest import Case, only


def test_places_that_are_always_warm_are_found(plain: Case) -> None:
    cells = np.random.default_rng(0).random(plain.evidence.cells.shape, np.float32)
    still = replace(plain.evidence, cells=cells.copy())
    assert not heat.always_warm(still).any()
    _, finding = heat.answer(still, quiet=True)
    assert finding.severity is Severity.NONE
    cells[:, 3:5, 3:5] += 1
    evidence = replace(plain.evidence, cells=cells)
    warm = heat.always_warm(evidence)
    assert warm[3:5, 3:5].all()
    assert warm.sum() == 4
    _, finding = heat.answer(evidence, quiet=True)
    assert finding.severity is Severity.LOW
    assert finding.figures["share_good"] > 0.9


def test_a_place_is_found_from_as_many_images_as_are_said_to_be_needed(plain: Case) -> None:
    good = plain.evidence.good
    cells = np.random.default_rng(0).random(plain.evidence.cells.shape, np.float32) + 0.1
    cells[:, 3, 3] = 0
    needed = heat.fewest_warm(len(good), cells[0].size)
    for count, found in ((needed - 1, False), (needed, True)):
        cells[good[:count], 3, 3] = 5
        assert bool(heat.always_warm(replace(plain.evidence, cells=cells))[3, 3]) == found


def test_two_good_images_are_too_few_to_say(plain: Case) -> None:
    few = only(plain.evidence, plain.evidence.good[:2])
    _, finding = heat.answer(few, quiet=True)
    assert finding.severity is Severity.UNKNOWN
    assert "could be so by chance" in finding.power
