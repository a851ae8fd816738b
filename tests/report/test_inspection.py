"""Images through a real small detector: figures against scikit-learn and the metrics, files as they are read."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.metrics import roc_auc_score

from fcdd import images, metrics
from fcdd.detector.calibration import Verdict
from fcdd.detector.detector import Detector, Settings
from fcdd.detector.result import Result
from fcdd.folders import Labelled
from fcdd.nn.description import Architecture
from fcdd.report import inspection, render
from fcdd.report.drawing import BORDER, LINE
from fcdd.report.inspection import explained, heat, overlay_names, roi_of

SMALL = Settings(architecture=Architecture(planes=4, directions=2), smallest=64, largest=96, vectors=2000)
SIZE = (72, 96)


def part(seed: int, size: tuple[int, int] = SIZE) -> np.ndarray:
    """A brushed surface: streaks along x, RGB uint8 (H, W, 3)."""
    random = np.random.default_rng(seed)
    streaks = 130 + 25 * random.standard_normal((size[0], 1)) + 4 * random.standard_normal(size)
    return np.clip(streaks[..., None] * [1.0, 0.95, 0.9], 0, 255).astype(np.uint8)


def defective(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A part with a square brushed the other way, and its mask."""
    image, mask = part(seed), np.zeros(SIZE, np.bool_)
    mask[24:48, 40:64] = True
    image[mask] = image[24:48, 40:64].transpose(1, 0, 2).reshape(-1, 3)
    return image, mask


@pytest.fixture(scope="module")
def detector() -> Detector:
    return Detector(SMALL).fit([part(seed) for seed in range(16)])


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Labelled:
    """Six good parts and four defective ones with masks, as files."""
    root = tmp_path_factory.mktemp("parts")
    found = Labelled([], [], [], [])
    for seed in range(100, 106):
        images.save_png(part(seed), root / f"{seed}.png")
        found.paths.append(root / f"{seed}.png")
        found.mask_paths.append(None)
    for seed in range(200, 204):
        image, mask = defective(seed)
        images.save_png(image, root / f"{seed}.png")
        images.save_png(mask.astype(np.uint8) * 255, root / f"{seed}_mask.png")
        found.paths.append(root / f"{seed}.png")
        found.mask_paths.append(root / f"{seed}_mask.png")
    found.labels.extend([0] * 6 + [1] * 4)
    found.kinds.extend(["good"] * 6 + ["turned"] * 4)
    return found


def masks_of(parts: Labelled) -> list[np.ndarray]:
    return [np.zeros(SIZE, np.bool_) if path is None else images.load_mask(path) for path in parts.mask_paths]


def test_figures_are_those_of_the_results(detector: Detector, parts: Labelled) -> None:
    evaluation, items, ranking = inspection.evaluate(detector, parts, quiet=True)
    results = list(detector.predict(parts.paths))
    scores, masks = [r.score for r in results], masks_of(parts)
    assert [item.score for item in items] == scores
    assert evaluation.images == 10
    assert evaluation.image_auroc == pytest.approx(roc_auc_score(parts.labels, scores))
    assert (evaluation.image_auroc_low, evaluation.image_auroc_high) == metrics.auroc_interval(scores, parts.labels)
    assert evaluation.best_f1 == metrics.best_f1(scores, parts.labels)[0]
    heats = np.stack([r.heatmap for r in results])
    assert evaluation.pixel_auroc == pytest.approx(roc_auc_score(np.stack(masks).ravel(), heats.ravel()), abs=1e-4)
    overlap = metrics.Aupro()
    for one, mask in zip(heats, masks, strict=True):
        overlap.update(one, mask)
    assert evaluation.aupro == overlap.aupro()
    assert ranking is not None
    assert ranking.auroc() == evaluation.pixel_auroc
    assert evaluation.images_per_second > 0


def test_the_toy_defects_are_found(detector: Detector, parts: Labelled) -> None:
    evaluation, _, _ = inspection.evaluate(detector, parts, quiet=True)
    assert evaluation.image_auroc == 1.0
    assert evaluation.pixel_auroc is not None
    assert evaluation.pixel_auroc > 0.9


def test_verdicts_are_counted_by_kind(detector: Detector, parts: Labelled) -> None:
    evaluation, items, _ = inspection.evaluate(detector, parts, quiet=True)
    for kind in ("good", "turned"):
        told = [str(item.verdict) for item in items if item.kind == kind]
        assert evaluation.verdicts[kind] == {verdict: told.count(verdict) for verdict in set(told)}
    assert set(evaluation.verdicts) == {"good", "turned"}


def test_items_show_the_truth_where_it_is_known(detector: Detector, parts: Labelled) -> None:
    _, items, _ = inspection.evaluate(detector, parts, quiet=True)
    assert [item.name for item in items] == [str(path) for path in parts.paths]
    assert [item.label for item in items] == parts.labels
    assert [len(item.thumbnails) for item in items] == [3] * 6 + [4] * 4
    assert {item.size for item in items} == {(96, 72)}


def test_what_cannot_be_measured_is_none(detector: Detector, parts: Labelled) -> None:
    good = Labelled(parts.paths[:2], parts.labels[:2], parts.kinds[:2], parts.mask_paths[:2])
    alone, _, ranking = inspection.evaluate(detector, good, quiet=True)
    assert (alone.image_auroc, alone.image_auroc_low, alone.best_f1, alone.pixel_auroc, alone.aupro) == (None,) * 5
    assert ranking is None
    one_mask_short = parts._replace(mask_paths=[*parts.mask_paths[:-1], None])
    partly, _, ranking = inspection.evaluate(detector, one_mask_short, quiet=True)
    assert partly.image_auroc is not None
    assert (partly.pixel_auroc, partly.aupro, ranking) == (None, None, None)


def test_the_report_holds_its_thresholds_and_renders(detector: Detector, parts: Labelled, tmp_path: Path) -> None:
    _, items, ranking = inspection.evaluate(detector, parts, quiet=True)
    calibration = detector.calibration
    data = inspection.report("plate", "ten parts", items, calibration, {"Data": {"good": "16"}}, ranking)
    assert data.limits == calibration.limits
    assert data.guarantee == calibration.promise
    assert data.false_rejects == 1 / 5  # four calibration images
    set_by_hand = inspection.report("plate", "", items, replace(calibration, reject_above=1.0), {})
    assert set_by_hand.false_rejects is None
    render(data, tmp_path / "page.html")
    assert "ten parts" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def written(detector: Detector, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three images of different sizes and types below one root, and what was written about them."""
    root = tmp_path_factory.mktemp("incoming")
    (root / "shift 1").mkdir()
    images.save_png(part(300), root / "a.png")
    Image.fromarray(defective(301)[0]).save(root / "a.bmp")
    images.save_png(part(302, (144, 192)), root / "shift 1" / "b.png")
    paths = [root / "a.bmp", root / "a.png", root / "shift 1" / "b.png"]
    rows, _ = inspection.write_results(detector, paths, root, root / "out", quiet=True)
    (root / "rows.json").write_text(json.dumps(rows))
    return root


def test_files_tell_what_predict_tells(detector: Detector, written: Path) -> None:
    rows = [json.loads(line) for line in (written / "out" / "results.jsonl").read_text().splitlines()]
    assert rows == json.loads((written / "rows.json").read_text())
    assert [row["file"] for row in rows] == ["a.bmp", "a.png", str(Path("shift 1") / "b.png")]
    for row in rows:
        result = detector.predict(written / row["file"])
        assert row["score"] == pytest.approx(result.score, rel=1e-4)
        assert row["verdict"] == str(result.verdict)
        assert len(row["regions"]) == len(result.regions)
    assert rows[0]["verdict"] == "NG"
    assert rows[0]["regions"]


def test_the_table_has_the_same_numbers(written: Path) -> None:
    rows = json.loads((written / "rows.json").read_text())
    with open(written / "out" / "scores.csv", newline="") as file:
        table = list(csv.DictReader(file))
    assert list(table[0]) == ["file", "score", "p_value", "verdict", "regions"]
    for line, row in zip(table, rows, strict=True):
        assert (line["file"], line["verdict"]) == (row["file"], row["verdict"])
        assert (float(line["score"]), float(line["p_value"])) == (row["score"], row["p_value"])
        assert int(line["regions"]) == len(row["regions"])


def test_overlays_keep_name_and_size_and_none_overwrites_another(written: Path) -> None:
    rows = json.loads((written / "rows.json").read_text())
    drawn = [Path(row["overlay"]) for row in rows]
    assert drawn == [Path("overlays", *name) for name in (("a.bmp.png",), ("a.png.png",), ("shift 1", "b.png"))]
    for row in rows:
        seen, image = images.load(written / "out" / row["overlay"]), images.load(written / row["file"])
        assert seen.shape[1] == image.shape[1]
        assert image.shape[0] < seen.shape[0] < image.shape[0] + 60  # the strip
    assert len(list((written / "out" / "overlays").rglob("*.png"))) == 3


def test_the_page_shows_every_overlay(written: Path) -> None:
    text = (written / "out" / "index.html").read_text(encoding="utf-8")
    for place in ("overlays/a.bmp.png", "overlays/a.png.png", "overlays/shift%201/b.png"):
        assert f'"{place}"' in text


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a.jpg", "sub/a.png"], ["a.png", "sub/a.png"]),
        (["a.jpg", "A.png", "b.tif"], ["a.jpg.png", "A.png.png", "b.png"]),
        (["a.jpg", "a.bmp", "a.jpg.png"], ["a.jpg.png", "a.bmp.png", "a.jpg.png.png"]),
    ],
)
def test_names_of_overlays(names: list[str], expected: list[str]) -> None:
    assert overlay_names([Path(name) for name in names]) == [Path("overlays") / name for name in expected]


def result_with(detector: Detector, heatmap: np.ndarray, verdict: Verdict = Verdict.NG, level: float = 0.3) -> Result:
    heat = heatmap.astype(np.float32)
    marked = (heat > level) & (verdict is not Verdict.OK)
    return Result(1.0, 0.1, verdict, heat, [], np.zeros(detector.grid.cells, np.float32), marked, level)


def test_heat_is_dark_where_parts_are_good_and_has_the_outline_at_one_half(detector: Detector) -> None:
    usual = detector.calibration.usual
    heatmap = usual + np.array([[-0.1, 0.0, 0.3, 0.6, 99.0]])
    shown = heat(detector, result_with(detector, heatmap, level=usual + 0.3))
    assert np.allclose(shown, [[0, 0, 0.5, 1, 1]], atol=1e-5)
    assert heat(detector, result_with(detector, heatmap, Verdict.OK, usual + 0.3)).max() == 0.5
    assert np.isfinite(heat(detector, result_with(detector, heatmap, level=usual))).all()


def test_only_what_accounts_for_the_verdict_is_outlined_and_tinted(detector: Detector) -> None:
    array, level = np.full((60, 80, 3), 90, np.uint8), detector.calibration.usual + 0.3
    heatmap = np.full((60, 80), level - 0.01)
    heatmap[20:32, 10:25] = level + 0.01
    good = explained(detector, array, result_with(detector, heatmap, Verdict.OK, level + 0.2))
    assert np.array_equal(good[:60], array)
    shown = explained(detector, array, result_with(detector, heatmap, level=level))[:60]
    assert (shown[18:20, 10:25] == LINE).all()
    assert (np.abs(shown[20:32, 10:25].astype(int) - 90).max(2) > 15).all()
    assert np.array_equal(shown[40:], array[40:])
    assert (array == 90).all()


def test_another_light_is_told_beside_the_verdicts(parts: Labelled, tmp_path: Path) -> None:
    """The good parts 25 levels brighter: the page, the figures and the files' summary say so, and what helps."""
    brighter = Labelled([], parts.labels, parts.kinds, [None] * len(parts.paths))
    for path in parts.paths:
        images.save_png(np.clip(images.load(path).astype(int) + 25, 0, 255).astype(np.uint8), tmp_path / path.name)
        brighter.paths.append(tmp_path / path.name)
    detector = Detector(SMALL).fit([part(seed) for seed in range(40)])
    usual, _, _ = inspection.evaluate(detector, parts, quiet=True)
    assert usual.looks is not None
    assert usual.looks.enough
    assert usual.looks.changes == ()
    found, _, _ = inspection.evaluate(detector, brighter, quiet=True)
    assert found.looks is not None
    assert found.looks.images == 6  # the good ones among ten
    assert "brighter by 2" in found.looks.sentence
    _, compared = inspection.write_results(detector, brighter.paths, tmp_path, tmp_path / "out", quiet=True)
    assert compared is not None
    assert compared.images == 10
    page = (tmp_path / "out" / "index.html").read_text()
    assert 'class="warning"' in page
    assert "fcdd calibrate MODEL NEW_GOOD" in page


def test_the_region_of_interest_is_drawn() -> None:
    roi = np.zeros(SIZE, np.bool_)
    roi[16:64, 16:80] = True
    bounded = Detector(SMALL, roi=roi).fit([part(seed) for seed in range(16)])
    array = part(100)
    result = bounded.predict(array)
    shown = explained(bounded, array, result)[: SIZE[0]].astype(int)
    inside = roi_of(bounded, SIZE)
    assert inside is not None
    first, row = int(np.flatnonzero(inside.any(1))[0]), inside.any(0)
    assert abs(first - 16) <= 4
    assert (shown[first, row] == BORDER).all()
    assert np.array_equal(shown[~inside], array[~inside])  # outside it the image stays as it is
    assert result.verdict == Verdict.NG or np.array_equal(shown[30:50, 30:60], array[30:50, 30:60])
    image = defective(201)[0]
    assert not bounded.predict(image).marked[~inside].any()


def test_an_image_has_an_outline_just_where_it_is_not_ok(detector: Detector, parts: Labelled) -> None:
    for result in detector.predict(parts.paths):
        assert (result.verdict is Verdict.OK) == (not result.regions) == (not result.marked.any())
        assert sum(region.area for region in result.regions) == result.marked.sum()
