"""Export writes only what answers the same, says how far it was measured, and refuses the rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from fcdd import images, metrics
from fcdd.detector import export as exporting
from fcdd.detector import graph
from fcdd.detector.detector import Detector
from fcdd.detector.export import HEATMAP, SCORE, Precision, export
from fcdd.detector.precision import half
from fcdd.detector.runtime import Runtime
from fcdd.errors import DataError, ModelError
from fcdd.nn.architecture import Architecture

from ..conftest import Deployed


@pytest.fixture(scope="module")
def good(deployed: Deployed) -> list[Path]:
    return images.find(deployed.plates / "train" / "good")


@pytest.fixture(scope="module")
def model(deployed: Deployed) -> onnx.ModelProto:
    return onnx.load_from_string(Runtime(deployed.onnx).graph)


@pytest.fixture
def built(model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every export writes the graph of the detector of `deployed`, whatever became of it since."""

    def again(_: Detector, eight: bool = False) -> onnx.ModelProto:
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        return copy

    monkeypatch.setattr(graph, "build", again)


@pytest.fixture
def own(deployed: Deployed, tmp_path: Path) -> Detector:
    """A copy to spoil."""
    deployed.detector.save(tmp_path / "own.safetensors")
    return Detector.load(tmp_path / "own.safetensors")


def test_the_measured_parity_is_in_the_file_and_true(deployed: Deployed, good: list[Path]) -> None:
    runtime = Runtime(deployed.onnx)
    parity = runtime.parity
    assert runtime.precision == "fp32"
    assert parity["source"] == "calibration images, 7 with synthetic defects, 7 at other sizes"
    assert (parity["images"], parity["verdicts"]) == (21, 0)
    held = [good[i] for i in deployed.detector.held_out(len(good))]
    found, expected = runtime.score_samples(held), deployed.detector.score_samples(held)
    assert np.abs(found / expected - 1).max() <= max(parity["score"], 1e-6) <= SCORE
    assert parity["heatmap"] <= HEATMAP


def test_without_images_patterns_serve_and_the_file_says_so(deployed: Deployed, tmp_path: Path) -> None:
    runtime, _ = export(deployed.detector, tmp_path / "m.onnx")
    assert runtime.parity["source"].startswith("patterns made in code")
    assert Runtime(tmp_path / "m.onnx").parity == runtime.parity


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("spoil", ["weights", "threshold"])
def test_a_model_that_answers_differently_is_not_written(
    spoil: str, own: Detector, good: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if spoil == "weights":
        with torch.no_grad():
            own.network.scale.mul_(1.001)
    else:  # scores agree, verdicts do not
        remembered = Runtime._remember

        def strict(self: Runtime, info: dict[str, object]) -> None:
            remembered(self, info)
            self.reject_above(0.0)

        monkeypatch.setattr(Runtime, "_remember", strict)
    with pytest.raises(ModelError, match=r"m\.onnx: not written, the exported model answers differently"):
        export(own, tmp_path / "m.onnx", good)
    assert not (tmp_path / "m.onnx").exists()


@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_smaller_files_tell_their_loss_and_are_calibrated_anew(
    precision: Precision, deployed: Deployed, good: list[Path], tmp_path: Path
) -> None:
    runtime, loss = export(deployed.detector, tmp_path / "m.onnx", good, precision)
    assert (tmp_path / "m.onnx").stat().st_size < (0.75 if precision == "fp16" else 1) * deployed.onnx.stat().st_size
    held = [good[i] for i in deployed.detector.held_out(len(good))]
    assert Runtime(tmp_path / "m.onnx").calibration.scores == pytest.approx(sorted(runtime.score_samples(held)))
    assert runtime.parity["image_loss"] <= exporting.AUROC_LOSS
    assert "loss" in str(loss)
    test = images.find(deployed.plates / "test")
    labels = [int(path.parent.name != "good") for path in test]
    scores = runtime.score_samples(test)
    assert metrics.auroc(scores, labels) > metrics.auroc(deployed.detector.score_samples(test), labels) - 0.05


def test_a_smaller_file_that_loses_too_much_is_not_written(
    deployed: Deployed, good: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ruined(model: object) -> bytes:
        for constant in model.graph.initializer:  # type: ignore[attr-defined]
            if constant.name.startswith("trunk.weight"):
                constant.raw_data = bytes(len(constant.raw_data))
        return half(model)  # type: ignore[arg-type]

    monkeypatch.setattr(exporting, "half", ruined)
    with pytest.raises(ModelError, match="fp16 loses too much"):
        export(deployed.detector, tmp_path / "m.onnx", good, "fp16")
    assert not (tmp_path / "m.onnx").exists()


def test_smaller_files_need_images_that_were_not_trained_on(
    deployed: Deployed, good: list[Path], tmp_path: Path
) -> None:
    trained = [path for path in good if deployed.detector.trained_on(path)]
    for pictures in (None, trained):
        with pytest.raises(DataError, match="thresholds are set anew"):
            export(deployed.detector, tmp_path / "m.onnx", pictures, "int8")


def test_defects_that_measure_a_loss_lie_where_the_detector_looks(deployed: Deployed, good: list[Path]) -> None:
    """Outside of the region of interest they would all be missed, and no loss would ever be seen."""
    roi = np.zeros((64, 64), np.bool_)
    roi[4:20, 40:60] = True
    detector = Detector(deployed.detector.settings, roi=roi).fit(good)
    clean = [images.resize(images.load(path), detector.grid.shape) for path in good]
    bad, masks = exporting._defected(detector, clean)
    region = exporting._region(detector)
    assert len(bad) == len(masks) > len(good) // 2
    assert all(mask.any() and not (mask & ~region).any() for mask in masks)
    assert all(any((one == whole)[~region].all() for whole in clean) for one in bad)
    loss = exporting.measure_loss(detector, detector, good[:6])  # type: ignore[arg-type]
    assert loss.pixel_auroc > 0.7
    assert loss.image_loss == loss.pixel_loss == 0


def test_distances_in_8_bits_are_nearly_the_same(deployed: Deployed, good: list[Path], tmp_path: Path) -> None:
    every = Architecture(planes=8, directions=4, dimensions=8, centres=40)
    detector = Detector(replace(deployed.detector.settings, architecture=every, method="sum")).fit(good)
    runtime, _ = export(detector, tmp_path / "m.onnx", good, "int8")
    body = onnx.load_from_string(runtime.graph).graph
    kinds = {constant.name: constant.data_type for constant in body.initializer}
    eight = [n for n in body.node if n.op_type == "DequantizeLinear" and kinds.get(n.input[0]) == onnx.TensorProto.INT8]
    assert len(eight) == 2  # directions of the planes, and centres
    test = images.find(deployed.plates / "test")
    found, expected = runtime.score_samples(test), detector.score_samples(test)
    assert not np.array_equal(found, expected)
    assert np.corrcoef(found, expected)[0, 1] > 0.999
