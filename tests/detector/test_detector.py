"""The detector as its users hold it: it learns, explains, promises only what it can keep, and survives a kill."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fcdd import images, metrics, modelfile
from fcdd.detector.calibration import Verdict
from fcdd.detector.detector import Detector, Settings
from fcdd.errors import CalibrationError, DataError, ImageError, ModelError
from fcdd.nn.description import Architecture

from ..conftest import Deployed
from ..plates import write_plates

SMALL = Settings(architecture=Architecture(planes=8, directions=4), smallest=128, largest=128, vectors=8000)


@pytest.fixture(scope="module")
def plates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_plates(tmp_path_factory.mktemp("plates"))


@pytest.fixture(scope="module")
def detector(plates: Path) -> Detector:
    return Detector(SMALL).fit(plates / "train" / "good")


def pictures_of(plates: Path, kind: str) -> list[Path]:
    return images.find(plates / "test" / kind)


def test_defects_score_above_good_parts_and_the_heat_is_on_them(detector: Detector, plates: Path) -> None:
    good = detector.score_samples(pictures_of(plates, "good"))
    bad = detector.score_samples(pictures_of(plates, "stain") + pictures_of(plates, "chip"))
    assert metrics.auroc([*good, *bad], [0] * len(good) + [1] * len(bad)) > 0.9
    path = pictures_of(plates, "stain")[-1]
    result = detector.predict(path)
    mask = images.load_mask(plates / "ground_truth" / "stain" / f"{path.stem}_mask.png")
    assert result.heatmap.shape == mask.shape
    assert result.heatmap[mask].mean() > 1.5 * result.heatmap[~mask].mean()
    assert result.verdict == Verdict.NG
    assert result.regions
    box = result.regions[0]
    assert mask[box.y : box.y + box.height, box.x : box.x + box.width].any()


def test_the_score_is_a_function_of_the_cells_shown_alone(detector: Detector, plates: Path) -> None:
    for result in detector.predict(pictures_of(plates, "scratch")):
        strongest = np.sort(result.cells.ravel())[::-1][: max(1, round(0.01 * result.cells.size))]
        assert result.score == pytest.approx(float(strongest.mean()), rel=1e-6)
        assert np.allclose(result.heatmap, detector.grid.heatmap(result.cells, result.heatmap.shape))


def test_files_arrays_and_bytes_give_the_same_answer_at_the_images_own_size(detector: Detector, plates: Path) -> None:
    path = pictures_of(plates, "chip")[0]
    array = images.load(path)
    scores = [detector.predict(p).score for p in (path, str(path), array, path.read_bytes())]
    assert scores == pytest.approx([scores[0]] * 4, rel=1e-6)
    large = np.kron(array, np.ones((3, 3, 1), np.uint8))
    assert detector.predict(large).heatmap.shape == (384, 384)


def test_a_saved_detector_answers_as_before(detector: Detector, plates: Path, tmp_path: Path) -> None:
    detector.save(tmp_path / "d.safetensors")
    again = Detector.load(tmp_path / "d.safetensors")
    for kind in ("good", "dent"):
        for one, other in zip(
            detector.predict(pictures_of(plates, kind)), again.predict(pictures_of(plates, kind)), strict=True
        ):
            assert other.score == pytest.approx(one.score, rel=1e-5)
            assert (other.verdict, other.p_value) == (one.verdict, one.p_value)
    assert again.settings == detector.settings


def test_lighting_drift_is_no_defect(detector: Detector, plates: Path) -> None:
    arrays = [images.load(path) for path in pictures_of(plates, "good")]
    plain = detector.score_samples(arrays)
    for gains in ((0.93, 0.93, 0.93), (1.07, 1.07, 1.07), (1.04, 1.0, 0.96)):
        lit = [np.clip(np.round(a * np.array(gains)), 0, 255).astype(np.uint8) for a in arrays]
        assert np.abs(detector.score_samples(lit) / plain - 1).max() < 0.25


def test_outside_the_region_of_interest_nothing_counts(plates: Path) -> None:
    roi = np.zeros((64, 64), np.bool_)
    roi[:32] = True
    detector = Detector(SMALL, roi=roi).fit(plates / "train" / "good")
    array = images.load(pictures_of(plates, "good")[0])
    changed = array.copy()
    changed[104:, 40:80] = (255, 0, 0)
    plain, defaced = detector.predict(array), detector.predict(changed)
    assert defaced.cells[:8].max() < 2 * plain.cells[:8].max()
    assert (defaced.cells[8:] == 0).all()
    assert len(detector.calibration.scores) == 7
    with pytest.raises(DataError, match="smaller than one cell"):
        Detector(SMALL, roi=np.zeros((64, 64), np.bool_)).fit(plates / "train" / "good")


def test_labelled_defects_teach_what_to_look_for(detector: Detector, plates: Path) -> None:
    scratches = pictures_of(plates, "scratch")
    masks = [images.load_mask(plates / "ground_truth" / "scratch" / f"{p.stem}_mask.png") for p in scratches]
    taught = Detector(SMALL).fit(plates / "train" / "good", scratches[:2], masks[:2])

    def lift(d: Detector) -> float:
        cells = d.predict(scratches[2]).cells
        return float(np.sort(cells.ravel())[-3:].mean() / np.median(cells))

    assert lift(taught) > lift(detector)
    by_folders = Detector(SMALL).fit(plates / "train" / "good", plates / "test" / "scratch")
    assert by_folders.card["defects"] == 3
    with pytest.raises(DataError, match="2 defects and 1 masks"):
        Detector(SMALL).fit(plates / "train" / "good", scratches[:2], masks[:1])
    with pytest.raises(DataError, match="no masks"):
        Detector(SMALL).fit(plates / "train" / "good", scratches[:2], masks[:2], whole=True)


def test_it_promises_only_what_its_images_support(plates: Path) -> None:
    strict = Settings(**{**vars(SMALL), "max_false_rejects": 0.01})
    with pytest.raises(CalibrationError, match=r"92 more calibration images are needed, 368 more good images"):
        Detector(strict).fit(plates / "train" / "good")
    with pytest.raises(DataError, match="9 good images: at least 10"):
        Detector(SMALL).fit(images.find(plates / "train" / "good")[:9])


def test_calibration_takes_only_unseen_images(detector: Detector, plates: Path, tmp_path: Path) -> None:
    detector.save(tmp_path / "d")
    own = Detector.load(tmp_path / "d")
    with pytest.raises(CalibrationError, match="were trained on"):
        own.calibrate(images.find(plates / "train" / "good"))
    own.calibrate(pictures_of(plates, "good"))
    assert len(own.calibration.scores) == 6


def test_bad_arrays_and_untrained_detectors_are_refused(detector: Detector) -> None:
    with pytest.raises(ImageError, match="uint8"):
        detector.predict(np.zeros((8, 8, 3), np.float32))
    with pytest.raises(ModelError, match="call fit"):
        Detector().predict(np.zeros((8, 8, 3), np.uint8))


def test_the_same_seed_gives_the_same_detector(detector: Detector, plates: Path, tmp_path: Path) -> None:
    detector.save(tmp_path / "one")
    Detector(SMALL).fit(plates / "train" / "good").save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_training_killed_at_random_moments_ends_with_the_same_model(plates: Path, tmp_path: Path) -> None:
    def launch(name: str) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            "-m",
            "fcdd.cli",
            "train",
            str(plates / "train" / "good"),
            "--threads",
            "1",
            "--json",
        ]
        return subprocess.Popen([*command, "-o", str(tmp_path / name), "--overwrite"], stdout=subprocess.DEVNULL)

    begun = time.monotonic()
    assert launch("whole.safetensors").wait() == 0
    needed = time.monotonic() - begun
    chance, killed = random.Random(1), 0
    for _ in range(2):
        process = launch("killed.safetensors")
        time.sleep(chance.uniform(0.3, 0.9) * needed)
        process.kill()
        killed += process.wait() == -signal.SIGKILL
    assert killed
    assert launch("killed.safetensors").wait() == 0
    assert (tmp_path / "whole.safetensors").read_bytes() == (tmp_path / "killed.safetensors").read_bytes()
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".work")]


def test_a_file_of_schema_1_is_read(tmp_path: Path, deployed: Deployed) -> None:
    """It names no kind of network, has no weights of the parts, and its share of strongest cells is a setting."""
    deployed.detector.save(tmp_path / "new.safetensors")
    tensors, info = modelfile.read(tmp_path / "new.safetensors", "detector")
    del tensors["weights"]
    architecture = {k: v for k, v in info.pop("architecture").items() if k != "kind"}
    old = {"smallest": 128, "largest": 128, "vectors": 8000, "holdout": 0.25, "top": 0.01, "sigma": 8.0}
    info["settings"] = {**old, "architecture": architecture, "max_false_rejects": None, "review": None}
    del info["top"], info["versions"]
    given = info["calibration"]
    info["pixel_floor"], info["pixel_threshold"] = given["usual"], 0.5
    info["calibration"] = {key: given[key] for key in ("scores", "review", "reject", "reject_above")}
    monkey = pytest.MonkeyPatch()
    monkey.setattr(modelfile, "SCHEMA", 1)
    modelfile.write(tmp_path / "old.safetensors", "detector", tensors, info)
    monkey.undo()
    again = Detector.load(tmp_path / "old.safetensors")
    path = images.find(deployed.plates / "test")[0]
    assert again.predict(path).score == deployed.detector.predict(path).score
    assert again.top == 0.01
    assert again.calibration == deployed.detector.calibration
    assert again.versions.active.number == 1


def test_a_model_without_calibration_scores_and_says_how_to_get_verdicts(tmp_path: Path, deployed: Deployed) -> None:
    own = deployed.detector
    bare = Detector.of(own.network, own.settings, own.grid.shape, dict(own.card))
    bare.save(tmp_path / "bare.safetensors")
    again = Detector.load(tmp_path / "bare.safetensors")
    path = images.find(deployed.plates / "test")[0]
    assert len(again.score_samples([path])) == 1
    with pytest.raises(ModelError, match=r"not calibrated.*fcdd calibrate"):
        again.predict(path)
    again.calibrate(images.find(deployed.plates / "test" / "good") * 3)
    assert again.predict(path).p_value > 0


def test_training_images_of_another_aspect_are_refused_or_fitted(plates: Path) -> None:
    good: list[np.ndarray] = [images.load(path) for path in images.find(plates / "train" / "good")]
    wide = np.pad(good[0], ((0, 0), (50, 50), (0, 0)), "edge")
    with pytest.raises(ImageError, match=r"228 × 128 pixels.*--fit"):
        Detector(SMALL).fit([*good, *[wide] * 4])  # of which some are trained on
    plain = Detector(SMALL).fit([*good, *[good[0]] * 4])
    fitted = Detector(SMALL, framing="crop").fit([*good, *[wide] * 4])
    assert fitted.card["aspect"] == 1.0
    assert fitted.predict(good[1]).score == pytest.approx(plain.predict(good[1]).score, rel=1e-4)


def test_a_region_of_interest_of_another_aspect_is_refused(plates: Path) -> None:
    good = [images.load(path) for path in images.find(plates / "train" / "good")]
    with pytest.raises(DataError, match=r"200 × 100 pixels.*another aspect"):
        Detector(SMALL, roi=np.ones((100, 200), np.bool_)).fit(good)
