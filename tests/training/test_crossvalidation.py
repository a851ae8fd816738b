"""The head of labelled defects joins as far as held-out defects show that it helps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from fcdd import images
from fcdd.data.sources import Images
from fcdd.detector.detector import Detector
from fcdd.detector.settings import Settings
from fcdd.nn.architecture import Architecture
from fcdd.nn.description import Description
from fcdd.training import crossvalidation, head
from fcdd.training.crossvalidation import CAUTIOUS, FACTORS, MASKED, Outcome, fit
from fcdd.training.head import Cells
from fcdd.training.learners.nominal import labelled_cells
from fcdd.training.lesson import Lesson

from ..conftest import Deployed

SMALL = Settings(Architecture(planes=8, directions=4), "nominal", smallest=128, largest=128, vectors=8000)


def defects_of(plates: Path) -> tuple[list[Path], list[np.ndarray]]:
    paths = [path for kind in ("stain", "chip") for path in images.find(plates / "test" / kind)]
    masks = [plates / "ground_truth" / path.parent.name / f"{path.stem}_mask.png" for path in paths]
    return paths, [images.load_mask(mask) for mask in masks]


@pytest.fixture(scope="module")
def learnt(deployed: Deployed) -> Detector:
    paths, masks = defects_of(deployed.plates)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(head, "STEPS", 60)  # six heads are trained, on plates so plain that this is enough
        return Detector(SMALL).fit(images.find(deployed.plates / "train" / "good"), paths, masks)


def lesson_of(deployed: Deployed, network: Description) -> Lesson:
    paths, masks = defects_of(deployed.plates)
    good = images.find(deployed.plates / "train" / "good")[:8]
    inside = torch.ones(16 * 16, dtype=torch.bool)
    return Lesson(good, Images(good, 128), (128, 128), inside, 0, 1000, defects=paths, masks=masks)


def test_every_labelled_defect_is_scored_by_a_head_that_did_not_see_it(learnt: Detector, deployed: Deployed) -> None:
    assert len(learnt.held_out_defects) == 6
    assert np.median(learnt.held_out_defects) > max(learnt.calibration.scores)  # plain defects of two kinds
    network = learnt.network
    assert isinstance(network, Description)
    assert float(network.weights[network.PARTS.index("head")]) in FACTORS


def test_folds_never_hold_what_they_are_tested_on(learnt: Detector, deployed: Deployed) -> None:
    network = learnt.network
    assert isinstance(network, Description)
    lesson, gathered, trained = lesson_of(deployed, network), [], []

    def gather(part: Lesson) -> Cells:
        gathered.append([lesson.defects.index(one) for one in part.defects])
        number = torch.tensor(float(len(gathered)))
        return Cells(number.view(1, 1, 1), torch.ones(1), torch.zeros(0, 1))

    before = network.weights.clone()
    fit(network, lesson, 0.01, gather, lambda cells: trained.append(cells.anomalous.flatten().tolist()))
    network.weights.copy_(before)
    assert sorted(one for fold in gathered for one in fold) == list(range(6))
    assert trained == [[2, 3], [1, 3], [1, 2], [1, 2, 3]]


def test_a_head_that_harms_does_not_join(learnt: Detector, deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes defects for good and good surfaces for defects."""
    monkeypatch.setattr(head, "STEPS", 60)
    network = learnt.network
    assert isinstance(network, Description)
    own = network.head
    assert own is not None
    kept, weights = {k: v.clone() for k, v in own.state_dict().items()}, network.weights.clone()
    network.weights.fill_(1.0)
    lesson = lesson_of(deployed, network)
    try:
        found = fit(
            network,
            lesson,
            0.01,
            lambda part: labelled_cells(network, part),
            lambda cells: head.train_head(
                network,
                cells.anomalous[:, 0],
                Cells(cells.nominal[:, None], torch.ones(len(cells.nominal)), cells.anomalous[:, 0]),
                0,
            ),
        )
        assert found.factor == 0.0
        assert float(network.weights[network.PARTS.index("head")]) == 0.0
    finally:
        own.load_state_dict(kept)
        network.weights.copy_(weights)


def test_with_fewer_than_five_a_cautious_rule_decides() -> None:
    cautious = crossvalidation._cautious
    assert cautious(masked=False, synthetic=False) == Outcome(True, CAUTIOUS)
    assert cautious(masked=True, synthetic=False) == Outcome(True, MASKED)
    assert cautious(masked=False, synthetic=True) == Outcome(False, 1.0)  # the synthetic head stays as it is
    assert cautious(masked=True, synthetic=True) == Outcome(True, 1.0)


def test_what_stands_out_more_is_further_apart() -> None:
    good = torch.tensor([1.0, 1.1, 0.9, 1.2])
    near, far = crossvalidation._apart(good, good + 1), crossvalidation._apart(good, good + 3)
    assert near[0] == far[0] == 1.0
    assert far > near
    assert crossvalidation._apart(good, good)[0] == 0.5
