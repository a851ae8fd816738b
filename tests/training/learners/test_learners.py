"""Every method learns from the same lesson, finds defects it has not seen, and goes on where it was killed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fcdd import folders, images, metrics
from fcdd.anomalies.cues import Cue
from fcdd.detector import Detector, load
from fcdd.detector.export import export
from fcdd.detector.settings import Settings
from fcdd.errors import DataError
from fcdd.nn.architecture import Architecture, FcnArchitecture
from fcdd.nn.description import Description
from fcdd.training import head, maps, synthesis
from fcdd.training.learners import LEARNERS

from ...plates import write_plates

SMALL = {"smallest": 128, "largest": 128, "vectors": 8000}
ARCHITECTURES = {
    "nominal": Architecture(planes=8, directions=4),
    "fcdd": Architecture(planes=0, dimensions=16),
    "sum": Architecture(planes=8, directions=4, dimensions=16, width=64, centres=200),
}


@pytest.fixture(scope="module")
def plates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_plates(tmp_path_factory.mktemp("learners") / "plates")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few views and steps: enough to learn plates."""
    from fcdd.training.learners import fcdd

    monkeypatch.setattr(maps, "WANTED", 40)
    monkeypatch.setattr(maps, "LABELLED_VIEWS", 8)
    monkeypatch.setattr(synthesis, "WANTED", 40)
    monkeypatch.setattr(fcdd, "STEPS", 60)
    monkeypatch.setattr(head, "STEPS", 60)


def auroc(detector: Detector, plates: Path) -> float:
    test = folders.read_test(plates)
    return metrics.auroc(detector.score_samples(test.paths), test.labels)


@pytest.mark.parametrize("method", ["nominal", "fcdd", "sum"])
def test_a_method_learns_to_find_defects_and_travels(method: str, plates: Path, tmp_path: Path) -> None:
    given = Settings(ARCHITECTURES[method], method=method, **SMALL)
    detector = Detector(given).fit(plates / "train" / "good")
    assert auroc(detector, plates) > 0.75
    assert detector.settings is given
    assert detector.top == LEARNERS[method].top
    detector.save(tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors")
    runtime, parity = export(detector, tmp_path / "m.onnx", images.find(plates / "train" / "good")[:12])
    path = images.find(plates / "test")[0]
    assert again.predict(path).score == detector.predict(path).score
    assert runtime.predict(path).score == pytest.approx(detector.predict(path).score, rel=1e-4)
    assert "fcdd" in str(type(parity))


def test_labelled_anomalies_are_learnt_with_and_without_masks(plates: Path) -> None:
    found = folders.read_test(plates)
    bad = [i for i, y in enumerate(found.labels) if y][::3]
    masks = [found.mask_paths[i] if n % 2 else None for n, i in enumerate(bad)]
    settings = Settings(ARCHITECTURES["fcdd"], method="fcdd", **SMALL)
    detector = Detector(settings).fit(images.find(plates / "train" / "good"), [found.paths[i] for i in bad], masks)
    rest = [i for i in range(len(found.paths)) if i not in bad]
    assert metrics.auroc(detector.score_samples([found.paths[i] for i in rest]), [found.labels[i] for i in rest]) > 0.75
    assert detector.card["defects"] == len(bad)


def test_outliers_take_the_place_of_synthetic_anomalies(plates: Path) -> None:
    random = np.random.default_rng(0)
    others = [random.integers(0, 256, (64, 64, 3), dtype=np.uint8) for _ in range(6)]
    settings = Settings(ARCHITECTURES["fcdd"], method="fcdd", **SMALL)
    good = images.find(plates / "train" / "good")
    detector = Detector(settings).fit(good, outliers=others)
    held = [good[i] for i in detector.held_out(len(good))]
    unseen = random.integers(0, 256, (64, 64, 3), dtype=np.uint8)
    assert detector.predict(unseen).score > 3 * max(detector.score_samples(held))
    with pytest.raises(DataError, match="does not learn from outliers; take one of: fcdd"):
        Detector(Settings(ARCHITECTURES["nominal"], **SMALL)).fit(good, outliers=others)


def test_a_network_of_the_paper_learns_on_a_folder(plates: Path, tmp_path: Path) -> None:
    settings = Settings(FcnArchitecture("fmnist", dimensions=8), method="fcdd", epochs=2)
    good = images.find(plates / "train" / "good")
    detector = Detector(settings).fit(good, work=tmp_path / "work")
    assert detector.grid.shape == (28, 28)
    assert detector.grid.sigma == 1.2
    assert detector.predict(good[0]).cells.shape == (7, 7)
    export(detector, tmp_path / "m.onnx", good[:12])


@pytest.mark.parametrize("anomalies", ["outliers", "defects"])
def test_a_network_of_the_paper_learns_from_given_anomalies(plates: Path, anomalies: str) -> None:
    good, random = images.find(plates / "train" / "good"), np.random.default_rng(0)
    others = [random.integers(0, 256, (40, 40, 3), dtype=np.uint8) for _ in range(8)]
    settings = Settings(FcnArchitecture("fmnist", dimensions=8), method="fcdd", epochs=40)
    if anomalies == "outliers":
        detector = Detector(settings).fit(good, outliers=others)
    else:
        detector = Detector(settings).fit(good, others, [None] * 4 + [np.ones((40, 40), np.bool_)] * 4)
    unseen = random.integers(0, 256, (40, 40, 3), dtype=np.uint8)
    assert detector.predict(unseen).score > 2 * max(detector.calibration.scores)


def test_a_killed_learning_goes_on_with_its_maps(plates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(ARCHITECTURES["fcdd"], method="fcdd", **SMALL)
    good = images.find(plates / "train" / "good")
    whole = Detector(settings).fit(good)
    seen = Description.features
    calls: list[int] = []

    def killed(self: Description, batch: torch.Tensor) -> torch.Tensor:
        calls.append(len(batch))
        if len(calls) == 9:
            raise KeyboardInterrupt
        return seen(self, batch)

    monkeypatch.setattr(Description, "features", killed)
    with pytest.raises(KeyboardInterrupt):
        Detector(settings).fit(good, work=tmp_path)
    first = len(calls)
    calls.clear()
    calls.extend([0] * 10)
    resumed = Detector(settings).fit(good, work=tmp_path)
    assert first > 4
    kept, expected = resumed.network.state_dict(), whole.network.state_dict()
    assert all(torch.equal(kept[name], expected[name]) for name in expected)


def test_an_unknown_method_says_what_there_is(plates: Path) -> None:
    with pytest.raises(Exception, match="no method 'magic'; there are fcdd, nominal, sum"):
        Detector(replace(Settings(), method="magic")).fit(plates / "train" / "good")


def test_what_a_network_would_ignore_is_refused(plates: Path) -> None:
    good = images.find(plates / "train" / "good")
    with pytest.raises(DataError, match="epochs are for the paper's networks"):
        Detector(Settings(ARCHITECTURES["fcdd"], method="fcdd", epochs=3)).fit(good)
    cue = Cue((0.0, 0.0, 0.2, 0.2), (np.zeros((8, 8, 3), np.uint8),))
    with pytest.raises(DataError, match="cannot be neutralised"):
        Detector(Settings(FcnArchitecture("fmnist"), method="fcdd")).fit(good, cues=[cue])
