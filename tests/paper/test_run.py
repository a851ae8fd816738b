"""`fcdd run` as its users call it, on small files in the official layout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from fcdd import load
from fcdd.cli import app
from fcdd.data import CORPORA, DATASETS, Corpus, Dataset, Problem, Split, fashion_mnist
from fcdd.data.sources import Images
from fcdd.errors import DataError, RecipeError
from fcdd.images import find
from fcdd.paper import grid
from fcdd.paper.model import PaperModel
from fcdd.paper.run import Job, open_corpus, open_split, starts_from_weights
from fcdd.paper.run import run as run_job
from fcdd.training import recipe

from ..toy import stripes
from . import layouts


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Fashion-MNIST of stripes: class 1 is horizontal, class 0 vertical; and a folder of noise as exposure."""
    return layouts.fashion_mnist(tmp_path_factory.mktemp("data"), train=80, test=30)


def run(root: Path, *arguments: str) -> tuple[int, str, str]:
    common = ["run", "fmnist", "--normal", "trouser", "--data", str(root), "--oe", f"folder:{root / 'aux'}"]
    result = CliRunner().invoke(app, [*common, "--epochs", "3", "--set", "batch=16", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_a_run_learns_writes_its_result_and_is_not_done_twice(root: Path, tmp_path: Path) -> None:
    code, out, err = run(root, "-o", str(tmp_path / "r"), "--json")
    assert code == 0, err
    result = json.loads(out)
    assert result["image_auroc"] > 0.95
    assert result["pixel_auroc"] is None
    assert len(result["losses"]) == 3
    assert Image.open(result["files"]["heatmaps"]).size[0] > 300
    assert not (tmp_path / "r" / "checkpoint.safetensors").exists()
    stamp = (tmp_path / "r" / "model.safetensors").stat().st_mtime_ns
    code, out, _ = run(root, "-o", str(tmp_path / "r"))
    assert code == 0
    assert f"image AUROC         {result['image_auroc']:.4f}" in out
    assert (tmp_path / "r" / "model.safetensors").stat().st_mtime_ns == stamp
    code, _, err = run(root, "-o", str(tmp_path / "r"), "--seed", "1")
    assert (code, "--overwrite" in err) == (2, True)


def test_a_killed_overwrite_leaves_the_old_result_and_is_gone_on_with(root: Path, tmp_path: Path) -> None:
    place = tmp_path / "r"
    _, out, _ = run(root, "-o", str(place), "--json")
    old = json.loads(out)
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    words = ["run", "fmnist", "--normal", "trouser", "--data", str(root), "--oe", f"folder:{root / 'aux'}"]
    words += ["--epochs", "3", "--set", "batch=16", "--seed", "1", "-o", str(place), "--checkpoint-seconds", "0"]
    process = subprocess.Popen([sys.executable, "-m", "fcdd.cli", *words, "--overwrite"], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".fcdd-*/checkpoint.safetensors")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before
    code, _, err = run(root, "-o", str(place), "--seed", "2")  # another run does not take the begun one's right
    assert (code, "--overwrite" in err) == (2, True)
    code, out, err = run(root, "-o", str(place), "--seed", "1", "--json")
    assert code == 0, err
    new = json.loads(out)
    assert new["job"]["seed"] == 1
    assert new["scores"] != old["scores"]
    assert json.loads((place / "result.json").read_text()) == new
    assert Path(new["files"]["model"]) == place / "model.safetensors"
    assert sorted(path.name for path in place.iterdir()) == sorted(before)
    assert os.listdir(tmp_path) == ["r"]


def test_a_saved_model_scores_as_the_run_did(root: Path, tmp_path: Path) -> None:
    _, out, _ = run(root, "-o", str(tmp_path / "r"), "--json")
    result = json.loads(out)
    model = PaperModel.load(Path(result["files"]["model"]))
    test = torch.cat([stripes(30, False, 4), stripes(30, True, 5)])
    assert model.A(test).flatten(1).mean(1).tolist() == pytest.approx(result["scores"], rel=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "speed=9"], "unknown recipe value speed"),
        (["--normal", "sofa"], "sofa"),
        (["--network", "vgg11", "--set", "pretrained=true"], "--weights FILE"),
        (["--oe", "folder:/nonexistent-folder"], "nonexistent-folder"),
    ],
)
def test_bad_input_is_code_2_with_the_remedy(root: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    code, out, err = run(root, "-o", str(tmp_path / "r"), *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_a_baseline_runs_by_the_same_command(root: Path, tmp_path: Path) -> None:
    code, out, err = run(root, "-o", str(tmp_path / "r"), "--json", "--set", "method=hsc", "--set", "lr=0.02")
    assert code == 0, err
    result = json.loads(out)
    assert result["job"]["recipe"]["method"] == "hsc"
    assert result["image_auroc"] > 0.9
    assert Image.open(result["files"]["heatmaps"]).size[0] > 300
    model = PaperModel.load(Path(result["files"]["model"]))
    test = torch.cat([stripes(30, False, 4), stripes(30, True, 5)])
    assert model.scores(test).tolist() == pytest.approx(result["scores"], rel=1e-4)


def test_a_method_without_anomalies_opens_no_corpus(root: Path, tmp_path: Path) -> None:
    code, out, err = run(
        root, "-o", str(tmp_path / "r"), "--json", "--set", "method=ae", "--oe", "folder:/nonexistent-folder"
    )
    assert code == 0, err
    assert json.loads(out)["exposure"] == "none, trained on nominal images only"


def test_weights_are_named_only_where_they_are_used() -> None:
    def job(method: str) -> Job:
        return Job(recipe.load("mvtec", {"method": method}), "bottle", Path(), 0, Path("vgg11.pth"))

    assert [starts_from_weights(job(method)) for method in ("fcdd", "hsc", "ae", "svdd")] == [True, True, False, False]
    assert job("hsc").identity["weights"] == "vgg11.pth"
    assert job("ae").identity["weights"] == "random"


@pytest.fixture(scope="module")
def imagenette(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three classes in ImageNet's layout, two images each in train and val."""
    folder = tmp_path_factory.mktemp("imagenette")
    for part in ("train", "val"):
        for wnid in ("n01440764", "n02102040", "n03000684"):
            (folder / part / wnid).mkdir(parents=True)
            for index in range(2):
                noise = np.random.default_rng(index).integers(0, 256, (20, 24, 3), dtype=np.uint8)
                Image.fromarray(noise).save(folder / part / wnid / f"{index}.png")
    return folder


def imagenet_job(root: Path, exposure: str) -> Job:
    chosen = recipe.load("imagenet", {"exposure": exposure, "stored": 16, "size": 16})
    return Job(chosen, "n02102040", root, 0, None, random_start=True)


def test_the_nominal_class_is_not_among_its_anomalies(imagenette: Path) -> None:
    job = imagenet_job(imagenette, "imagenet")
    corpus, provenance = open_corpus(job, 3, open_split(job))
    assert isinstance(corpus, Images)
    assert {path.parent.name for path in corpus.paths} == {"n01440764", "n03000684"}
    assert {path.parents[1].name for path in corpus.paths} == {"train"}
    assert "4 of them of the test set's classes" in provenance


@pytest.mark.parametrize("part", ["train", "val"])
def test_a_corpus_with_the_problems_own_images_is_refused(imagenette: Path, part: str) -> None:
    job = imagenet_job(imagenette, f"folder:{imagenette / part}")
    with pytest.raises(DataError, match="both in the problem and among its auxiliary anomalies"):
        open_corpus(job, 3, open_split(job))


def test_a_new_dataset_and_corpus_are_one_registration_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else lists them: they run, are keyed by their files, and are named in messages."""

    def read(problem: Problem) -> Split:
        test = torch.cat([stripes(8, False, 1), stripes(8, True, 2)])
        kinds = [problem.normal] * 8 + ["other"] * 8
        return Split("lines/x", stripes(32, False, 3), test, torch.tensor([0] * 8 + [1] * 8), kinds, "made in code")

    lines = Dataset(title="Lines", classes=("x",), read=read, files=("lines/{normal}*",), eta=0.9, short=2)
    corpus = Corpus(read=lambda root, _: (stripes(16, True, 5), "more lines"), files=("lines/corpus*",))
    monkeypatch.setitem(DATASETS._known, "lines", lines)
    monkeypatch.setitem(CORPORA._known, "more-lines", corpus)
    text = (resources.files("fcdd.paper") / "recipes" / "fmnist.toml").read_text()
    (tmp_path / "lines.toml").write_text(
        text.replace('"fmnist"\nexp', '"lines"\nexp').replace("cifar100", "more-lines")
    )
    chosen = recipe.load(str(tmp_path / "lines.toml"), {"epochs": 1, "batch": 8})
    job = Job(chosen, "x", tmp_path, 0, None)
    result = run_job(job, tmp_path / "out", quiet=True)
    assert (result["data"], result["exposure"]) == ("made in code", "more lines")
    keys = [grid.key(job)]
    for name in ("x.idx", "corpus.bin"):
        (tmp_path / "lines").mkdir(exist_ok=True)
        (tmp_path / "lines" / name).write_bytes(b"1")
        grid._dataset_print.cache_clear()
        grid._corpus_print.cache_clear()
        keys.append(grid.key(job))
    assert len(set(keys)) == 3
    with pytest.raises(RecipeError, match="lines"):
        recipe.load("fmnist", {"dataset": "circles"})


def test_a_run_leaves_a_detector_that_is_calibrated_on_files_and_knows_what_it_trained_on(tmp_path: Path) -> None:
    data = layouts.mvtec(tmp_path / "data")
    place = data / "mvtec" / "bottle"
    noise = np.random.default_rng(5)
    for index in range(8):  # four are there; calibration takes ten
        plate = (128 + noise.normal(0, 12, (48, 48, 3))).clip(0, 255).astype(np.uint8)
        Image.fromarray(plate).save(place / "test" / "good" / f"more{index}.png")
    small = ["--weights", "none", "--epochs", "1", *layouts.SMALL, "-o", str(tmp_path / "r"), "--json"]
    result = CliRunner().invoke(app, ["run", "mvtec", "--normal", "bottle", "--data", str(data), *small])
    assert result.exit_code == 0, result.stderr
    found = load(json.loads(result.stdout)["files"]["model"])
    trained, tested = (find(place / part / "good") for part in ("train", "test"))
    assert found.trained_on(trained[0])
    assert not found.trained_on(tested[0])
    assert sorted(found.score_samples(tested).tolist()) == pytest.approx(found.calibration.scores)


def test_a_detector_of_a_run_scores_files_as_the_run_scored_tensors(root: Path, tmp_path: Path) -> None:
    _, out, _ = run(root, "-o", str(tmp_path / "r"), "--json")
    result = json.loads(out)
    found, test = load(tmp_path / "r" / "model.safetensors"), fashion_mnist.split(root, "trouser").test[:20]
    arrays = [image[0].numpy() for image in test]
    assert found.score_samples(arrays).tolist() == pytest.approx(result["scores"][:20], rel=1e-4)
    assert found.top == 1.0
    assert len(found.calibration.scores) >= 10
