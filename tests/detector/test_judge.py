"""One vocabulary: the trained and the exported detector take the same words and give the same answers."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

from fcdd import images
from fcdd.detector import load
from fcdd.detector.detector import Detector
from fcdd.detector.judge import Judge
from fcdd.detector.result import Result
from fcdd.detector.runtime import Runtime
from fcdd.errors import CalibrationError, ImageError
from fcdd.regions import Region
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
        and len(found.regions) == len(expected.regions)
        and all(_close(one, other) for one, other in zip(found.regions, expected.regions, strict=True))
    )


def _close(found: Region, expected: Region) -> bool:
    """The same region, but for a pixel on which the outline lies."""
    edges = [(r.x, r.y, r.x + r.width, r.y + r.height) for r in (found, expected)]
    return abs(np.subtract(*edges)).max() <= 1 and found.area == pytest.approx(expected.area, rel=0.01, abs=1)


def test_the_public_words_are_the_same() -> None:
    def words(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert words(Judge) == {
        "predict", "predict_arrays", "score_samples", "inspect", "score", "judge", "looked", "input", "frame",
        "calibrate", "trained_on", "refuse_trained", "relevel", "reject_above", "undo", "grid", "calibration",
        "calibrated", "versions", "inside", "info", "save",
    }  # fmt: skip
    assert words(Runtime) == words(Judge)
    assert words(Detector) - words(Judge) == {"fit", "load", "held_out", "network", "of"}
    for name in words(Judge) - {"info"}:
        assert inspect.getattr_static(Runtime, name) is inspect.getattr_static(Detector, name) or name == "save"


def test_it_is_what_inspection_needs(judge: Judge) -> None:
    fulfilled: Inspector = judge
    assert 0 < fulfilled.calibration.usual < fulfilled.calibration.limits.review


def test_every_way_to_ask_gives_the_same_results(judge: Judge, pictures: list[Path], expected: list[Result]) -> None:
    assert all(same(judge.predict(p), e) for p, e in zip(pictures[:3], expected, strict=False))
    assert all(same(f, e) for f, e in zip(judge.predict(pictures), expected, strict=True))
    assert all(same(f, e) for (_, f), e in zip(judge.inspect(map(str, pictures)), expected, strict=True))
    arrays = [images.load(path) for path in pictures]
    assert all(same(f, e) for f, e in zip(judge.predict_arrays(arrays), expected, strict=True))
    assert judge.score_samples(pictures) == pytest.approx([e.score for e in expected], rel=1e-4)
    assert same(judge.predict(pictures[0].read_bytes()), expected[0])


def test_an_image_has_one_verdict_alone_in_a_batch_in_a_folder_and_exported(
    judge: Judge, pictures: list[Path], expected: list[Result]
) -> None:
    """Also where the limits were set on the very scores: the image that a threshold is put on stays below it."""
    arrays = [images.load(path) for path in pictures]
    for chosen in expected[::4]:
        judge.reject_above(chosen.score, defects=[one.score for one in expected])
        alone = [judge.predict(path) for path in pictures]
        ways = [judge.predict_arrays(arrays), judge.predict_arrays(arrays[:3]), list(judge.predict(pictures))]
        for found in ways:
            assert [f.verdict for f in found] == [a.verdict for a in alone[: len(found)]]
            assert [f.p_value for f in found] == [a.p_value for a in alone[: len(found)]]
        again = judge.calibration
        assert [again.verdict(e.score) for e in expected] == [a.verdict for a in alone]


def test_an_image_is_not_ok_just_where_something_is_outlined(judge: Judge, pictures: list[Path]) -> None:
    for limit in (judge.calibration.limits.reject, 0.1, 1e9):
        judge.reject_above(limit)
        for result in judge.predict(pictures):
            assert (result.verdict == "OK") == (not result.regions) == (not result.marked.any())
            assert result.verdict != "OK" or result.heatmap.max() <= result.level


def test_the_heat_outside_a_region_of_interest_makes_no_region(deployed: Deployed, pictures: list[Path]) -> None:
    own = deployed.detector
    roi = np.zeros((128, 128), np.bool_)
    roi[:64] = True
    bounded = Detector.of(own.network, own.settings, own.grid.shape, dict(own.card))
    bounded.roi, bounded.top = roi, 0.01
    bounded._settle(own.network, own.grid)
    bounded.calibrate(images.find(deployed.plates / "test" / "good") * 4)
    bounded.reject_above(0.0)
    for result in bounded.predict(pictures):
        assert result.verdict == "NG"
        assert result.regions
        assert max(region.y + region.height for region in result.regions) <= 64


def test_one_batch_takes_any_mix_of_sizes(
    judge: Judge, deployed: Deployed, pictures: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    judge.framing = "stretch"
    monkeypatch.setattr(deployed.detector, "framing", "stretch")
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


def test_a_model_knows_how_its_calibration_images_looked(judge: Judge, deployed: Deployed, tmp_path: Path) -> None:
    pictures = images.find(deployed.plates / "test" / "good")
    seen = [result.looks for result in judge.predict(pictures) if result.looks is not None]
    assert judge.looks is not None
    assert len(judge.looks) == len(judge.calibration.scores)
    usual, brighter = judge.looked(seen), judge.looked([one + np.array([30, 0, 0, 0, 0, 0, 0]) for one in seen])
    assert usual is not None
    assert brighter is not None
    assert usual.changes == ()
    assert [change.trait for change in brighter.changes] == ["brightness"]
    info = judge.info()
    del info["looks"]  # as in files of before
    judge._remember(info)
    assert judge.looked(seen) is None


def test_calibrating_anew_takes_the_new_light_for_the_usual(judge: Judge, deployed: Deployed) -> None:
    paths = images.find(deployed.plates / "test" / "good")
    brighter = [np.clip(images.load(path).astype(int) + 30, 0, 255).astype(np.uint8) for path in paths]

    def changed() -> bool:
        found = judge.looked([result.looks for result in judge.predict(brighter) if result.looks is not None])
        assert found is not None
        return bool(found.changes)

    assert changed()
    judge.calibrate(brighter, 0.2)
    assert not changed()


@pytest.fixture(scope="module")
def wide(deployed: Deployed, pictures: list[Path]) -> np.ndarray:
    """A defective plate of 128 × 128 in the middle of an image of 228 × 128, its border repeated."""
    plate = images.load(next(path for path in pictures if path.parent.name == "stain"))
    return np.pad(plate, ((0, 0), (50, 50), (0, 0)), "edge")


def test_another_aspect_is_refused_with_a_remedy(judge: Judge, wide: np.ndarray) -> None:
    with pytest.raises(ImageError, match=r"228 × 128 pixels.*--fit"):
        judge.predict(wide)


def test_cropped_it_is_judged_as_the_part_alone_and_shown_in_its_place(judge: Judge, wide: np.ndarray) -> None:
    alone = judge.predict(np.ascontiguousarray(wide[:, 50:178]))
    judge.framing = "crop"
    found = judge.predict(wide)
    assert found.score == pytest.approx(alone.score, rel=1e-5)
    assert found.heatmap.shape == (128, 228)
    assert found.heatmap[:, 50:178] == pytest.approx(alone.heatmap, rel=1e-4)
    assert (found.heatmap[:, :50] == 0).all()
    assert [(r.x - 50, r.y, r.area) for r in found.regions] == [(r.x, r.y, r.area) for r in alone.regions]


def test_padding_is_never_a_defect(judge: Judge, wide: np.ndarray) -> None:
    judge.framing = "pad"
    found = judge.predict(wide)
    rows = np.flatnonzero((found.cells > 0).any(1)) * judge.grid.stride
    assert found.heatmap.shape == (128, 228)
    assert rows.min() >= 128 * 50 / 228 - judge.grid.stride
    assert rows.max() < 128 * 178 / 228


def test_the_way_to_fit_is_kept_with_the_model(judge: Judge, tmp_path: Path) -> None:
    judge.framing = "crop"
    name = tmp_path / ("m.onnx" if isinstance(judge, Runtime) else "m.safetensors")
    judge.save(name)
    assert load(name).framing == "crop"
    assert load(name, framing="pad").framing == "pad"


def test_undone_limits_of_other_images_leave_no_looks(deployed: Deployed, tmp_path: Path) -> None:
    judge = load(deployed.onnx)
    good = images.find(deployed.plates / "test" / "good")
    assert judge.looks is not None
    judge.reject_above(2 * judge.calibration.limits.reject)
    judge.undo()
    assert judge.looks is not None  # the limit was another, the images the same
    judge.calibrate(good, 0.2)
    judge.undo()
    assert judge.looks is None
    judge.save(tmp_path / "m.onnx")
    assert load(tmp_path / "m.onnx").looked([]) is None
