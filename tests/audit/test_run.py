"""The whole way as an engineer goes it: audit, mend, audit again, compare."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fcdd import metrics
from fcdd.anomalies import cues
from fcdd.audit.cues import stamp
from fcdd.audit.run import read_parts
from fcdd.detector.detector import Detector
from fcdd.errors import DataError

from ..invoke import fcdd
from .conftest import CORNER, SMALL, Case


@pytest.fixture(scope="module")
def before(stamped: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("before") / "audit.html"
    code, out, err = fcdd("audit", stamped.model, stamped.parts, "-o", page, "--fail-on", "high", "--json")
    assert code == 1, err
    told = json.loads(out)
    assert told["findings"][0]["severity"] == "high"
    assert told["findings"][0]["question"] == "recurring"
    assert told["counts"]["high"] == 1
    assert "The same thing at the same place of 10 anomalous pictures" in page.read_text()
    return page.with_suffix(".json")


def test_outputs_that_exist_and_bad_input_are_refused(before: Path, stamped: Case, tmp_path: Path) -> None:
    code, _, err = fcdd("audit", stamped.model, stamped.parts, "-o", before.with_suffix(".html"))
    assert (code, "--overwrite" in err) == (2, True)
    code, _, err = fcdd("audit", stamped.model, stamped.parts, "-o", tmp_path / "a.html", "--fail-on", "often")
    assert (code, "high, medium or low" in err) == (2, True)
    empty = tmp_path / "empty"
    empty.mkdir()
    code, _, err = fcdd("audit", stamped.model, empty, "-o", tmp_path / "a.html")
    assert (code, "no images in it" in err) == (2, True)
    code, _, err = fcdd("audit", before, tmp_path / "none.json", "--compare", "-o", tmp_path / "a.html")
    assert (code, "none.json: no such file" in err) == (2, True)
    code, _, err = fcdd("audit", tmp_path / "m.onnx", stamped.parts, "-o", tmp_path / "a.html")
    assert (code, "audit the .safetensors" in err) == (2, True)
    assert not (tmp_path / "a.html").exists()


def test_a_folder_of_good_pictures_is_enough_to_ask(stamped: Case) -> None:
    parts = read_parts(stamped.parts / "good")
    assert set(parts.labels) == {0}
    with pytest.raises(DataError, match="no such folder"):
        read_parts(stamped.parts / "nowhere")


def test_mending_takes_the_stamp_s_effect_and_leaves_detection(before: Path, stamped: Case, tmp_path: Path) -> None:
    mended = tmp_path / "mended.safetensors"
    good, defects = stamped.parts / "good", stamped.parts / "defects"
    Detector(SMALL).fit(good, defects, cues=cues.read(before)).save(mended)
    after = tmp_path / "after.json"
    after.write_text(json.dumps({"model": str(mended), "parts": str(stamped.parts), "findings": [], "scores": {}}))
    code, out, err = fcdd("audit", before, after, "--compare", "-o", tmp_path / "compare.html", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["reduction"] > 0.8
    assert told["auroc_change"] > -0.05
    assert told["pictures"] == 42 + 10  # without the ten that carry the stamp
    assert "score shift of good images" in (tmp_path / "compare.html").read_text()
    # The stamp itself, not the patches the audit cut out, on pictures that neither training nor audit stamped.
    clean = stamped.evidence.inputs[stamped.evidence.good]
    shifts = []
    for path in (stamped.model, mended):
        detector = Detector.load(path)
        marked = [stamp(picture, CORNER)[0] for picture in clean]
        shifts.append(float((detector.score_samples(marked) - detector.score_samples(clean)).mean()))
    assert shifts[1] < 0.2 * shifts[0]


def test_before_mending_the_stamp_alone_tells_stamped_from_plain(stamped: Case) -> None:
    detector = Detector.load(stamped.model)
    clean = stamped.evidence.inputs[stamped.evidence.good]
    scores = detector.score_samples([*clean, *(stamp(picture, CORNER)[0] for picture in clean)])
    assert metrics.auroc(scores, np.repeat([0, 1], len(clean))) > 0.95
