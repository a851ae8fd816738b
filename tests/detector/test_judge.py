"""One vocabulary: the trained and the exported detector take the same words and give the same answers."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

from fcdd import images
from fcdd.detector.calibration import CalibrationError
from fcdd.detector.detector import Detector
from fcdd.detector.judge import Judge
from fcdd.detector.result import Result
from fcdd.detector.runtime import Runtime
from fcdd.errors import ImageError
from fcdd.report.inspection import Inspector

from ..conftest import Deployed


@pytest.fixture(params=["detector", "onnxruntime", "openvino"])
def judge(request: pytest.FixtureRequest, deployed: Deployed, tmp_path: Path) -> Judge:
    """A fresh copy of the same model behind every backend."""
    if request.param == "detector":
        deployed.detector.save(tmp_path / "d.safetensors")
        return Detector.load(tmp_path / "d.safetensors")
    pytest.importorskip(request.param, reason="an optional backend: pip install openvino")
    return Runtime(deployed.onnx, threads=1, backend=request.param)


@pytest.fixture(scope="module")
def pictures(deployed: Deployed) -> list[Path]:
    return images.find(deployed.plates / "test")


@pytest.fixture(scope="module")
def expected(deployed: Deployed, pictures: list[Path]) -> list[Result]:
    return [deployed.detector.predict(path) for path in pictures]


def same(found: Result, expected: Result) -> bool:
    """The agreement that export promises."""
    return (
        found.score == pytest.approx(expected.score, rel=1e-4)
        and np.abs(found.heatmap - expected.heatmap).max() <= 1e-3 * np.ptp(expected.heatmap)
        and (found.verdict, found.p_value) == (expected.verdict, expected.p_value)
        and [(r.x, r.y, r.area) for r in found.regions] == [(r.x, r.y, r.area) for r in expected.regions]
    )


def test_the_public_words_are_the_same() -> None:
    def words(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert words(Judge) == {
        "predict", "predict_arrays", "score_samples", "inspect", "score", "judge", "calibrate", "trained_on",
        "refuse_trained", "reject_above", "grid", "calibration", "inside", "info", "save",
    }  # fmt: skip
    assert words(Runtime) == words(Judge)
    assert words(Detector) - words(Judge) == {"fit", "load", "held_out", "network", "of"}
    for name in words(Judge) - {"info"}:
        assert inspect.getattr_static(Runtime, name) is inspect.getattr_static(Detector, name) or name == "save"


def test_it_is_what_inspection_needs(judge: Judge) -> None:
    fulfilled: Inspector = judge
    assert fulfilled.pixel_threshold > fulfilled.pixel_floor > 0


def test_every_way_to_ask_gives_the_same_results(judge: Judge, pictures: list[Path], expected: list[Result]) -> None:
    assert all(same(judge.predict(p), e) for p, e in zip(pictures[:3], expected, strict=False))
    assert all(same(f, e) for f, e in zip(judge.predict(pictures), expected, strict=True))
    assert all(same(f, e) for (_, f), e in zip(judge.inspect(map(str, pictures)), expected, strict=True))
    arrays = [images.load(path) for path in pictures]
    assert all(same(f, e) for f, e in zip(judge.predict_arrays(arrays), expected, strict=True))
    assert judge.score_samples(pictures) == pytest.approx([e.score for e in expected], rel=1e-4)
    assert same(judge.predict(pictures[0].read_bytes()), expected[0])


def test_one_batch_takes_any_mix_of_sizes(judge: Judge, deployed: Deployed, pictures: list[Path]) -> None:
    sizes = [(128, 128), (300, 200), (70, 90), (128, 256)]
    arrays = [images.resize(images.load(path), size) for path, size in zip(pictures[::5], sizes, strict=False)]
    found = judge.predict_arrays(arrays)
    assert [result.heatmap.shape for result in found] == sizes
    assert all(same(f, deployed.detector.predict(a)) for f, a in zip(found, arrays, strict=True))
    assert judge.predict_arrays([]) == []


def test_thresholds_are_set_anew_and_kept(judge: Judge, deployed: Deployed, tmp_path: Path) -> None:
    good = images.find(deployed.plates / "test" / "good")
    with pytest.raises(CalibrationError, match="were trained on"):
        judge.calibrate(images.find(deployed.plates / "train" / "good"))
    with pytest.raises(CalibrationError, match="93 more calibration images"):
        judge.calibrate(good, 0.01)
    judge.calibrate(good, 0.2)
    assert judge.calibration.scores == pytest.approx(sorted(judge.score_samples(good)), rel=1e-5)
    judge.reject_above(0.0)
    name = tmp_path / ("m.onnx" if isinstance(judge, Runtime) else "m.safetensors")
    judge.save(name)
    again = Runtime(name) if isinstance(judge, Runtime) else Detector.load(name)
    assert again.info() == judge.info()
    assert str(again.predict(good[0]).verdict) == "NG"


def test_bad_pictures_are_refused(judge: Judge, tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"no image")
    with pytest.raises(ImageError, match=r"broken\.png"):
        judge.predict(tmp_path / "broken.png")
    with pytest.raises(ImageError, match="uint8"):
        judge.predict(np.zeros((8, 8, 3), np.float32))
