"""Cues: pasted where they belong, kept exactly in JSON, and given to half of the pictures alike on every call."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from fcdd.anomalies.cues import EXCLUDE, Cue, Marked, blend, outside, read
from fcdd.errors import DataError

PATCH = np.random.default_rng(0).integers(0, 255, (20, 40, 3), dtype=np.uint8)
CUE = Cue((0.25, 0.5, 0.75, 0.75), (PATCH,))


def test_pasting_changes_the_place_alone_and_its_middle_exactly() -> None:
    picture = np.full((80, 80, 3), 7, np.uint8)
    pasted = CUE.paste(picture, 3)
    mask = CUE.mask((80, 80))
    assert mask.sum() == 20 * 40
    assert np.array_equal(pasted[~mask], picture[~mask])
    assert np.array_equal(pasted[44:56, 24:56], PATCH[4:16, 4:36])
    assert (picture == 7).all()


def test_a_patch_fades_inside_but_not_at_the_picture_s_border() -> None:
    picture, patch = np.zeros((30, 30, 3), np.uint8), np.full((10, 10, 3), 200, np.uint8)
    pasted = blend(picture, patch, (slice(20, 30), slice(0, 10)))
    assert pasted[29, 0, 0] == 200
    assert pasted[20, 0, 0] == 40
    assert pasted[29, 9, 0] == 40
    assert pasted[27, 4, 0] == 200


def test_json_keeps_a_cue_exactly(tmp_path: Path) -> None:
    path = tmp_path / "findings.json"
    path.write_text(json.dumps({"findings": [{"cue": CUE.to_dict()}, {"cue": None}]}))
    (cue,) = read(path)
    assert cue.place == CUE.place
    assert np.array_equal(cue.patches[0], PATCH)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("{", "Run the audit again"),
        ('{"findings": []}', "no finding in it has a cue"),
        ('{"findings": [{"cue": {"place": [0, 0, 2, 1], "mend": "paste", "patches": []}}]}', "Run the audit again"),
        ('{"findings": [{"cue": {"place": [0, 0, 1, 1], "mend": "paste", "patches": ["x"]}}]}', "Run the audit again"),
    ],
)
def test_files_that_are_no_findings_are_refused(tmp_path: Path, content: str, word: str) -> None:
    (tmp_path / "f.json").write_text(content)
    with pytest.raises(DataError, match=word):
        read(tmp_path / "f.json")
    with pytest.raises(DataError, match="no such file"):
        read(tmp_path / "missing.json")


def test_half_of_the_pictures_are_marked_the_same_ones_each_time() -> None:
    pictures = torch.zeros((200, 3, 16, 16), dtype=torch.uint8)
    marked = Marked(pictures, [CUE], seed=0)
    once, again = marked[torch.arange(200)], marked[torch.arange(200).flip(0)].flip(0)
    assert torch.equal(once, again)
    assert 70 < int((once.amax((1, 2, 3)) > 0).sum()) < 130
    assert not pictures.any()


def test_excluded_places_leave_the_region_of_interest() -> None:
    excluded = Cue(CUE.place, CUE.patches, EXCLUDE)
    assert outside([CUE], None) is None
    region = outside([excluded], np.ones((40, 40), np.bool_))
    assert region is not None
    assert not region[20:30, 10:30].any()
    assert region.sum() == 40 * 40 - 200
    whole = outside([excluded], None)
    assert whole is not None
    assert whole.mean() == pytest.approx(1 - 0.5 * 0.25)
