"""Every experiment from its plan to its files, on small data in the official layouts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from fcdd.cli import app
from fcdd.errors import DataError, FcddError
from fcdd.paper.experiments import EXPERIMENTS, Report, publish
from fcdd.paper.grid import Ledger
from fcdd.paper.options import Options

from . import layouts

SMALL: dict[str, Any] = {
    "network": "cifar", "size": 32, "stored": 32, "augment": "none", "freeze": 0, "pretrained": False, "sigma": 4.0,
    "batch": 8, "passes": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    layouts.fashion_mnist(root, train=16, test=8)
    for write in (layouts.emnist, layouts.mnist, layouts.mvtec, layouts.voc, layouts.imagenette):
        write(root)
    return layouts.cifar(root, count=8)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all: experiments that share jobs share their results."""
    return tmp_path_factory.mktemp("out")


def reproduced(name: str, options: Options) -> tuple[Report, list[Path]]:
    ledger, tasks = Ledger(options.output), EXPERIMENTS[name].plan(options)
    for task in tasks:
        assert ledger.execute(task) == "done", ledger.failure(task)
    report, files = publish(name, options, ledger, tasks)
    assert all(path.stat().st_size > 0 for path in files)
    return report, files


def options_of(root: Path, out: Path, **chosen: Any) -> Options:
    return Options(**{"data": root, "output": out, "budget": "smoke", "overrides": SMALL, **chosen})


def test_table1_has_the_papers_columns_and_what_was_run(root: Path, out: Path) -> None:
    oe = {"batch": 8, "exposure": f"folder:{root / 'aux'}"}
    chosen = {"datasets": ("fmnist",), "methods": ("fcdd",), "classes": ("trousers", "0"), "seeds": 2}
    report, files = reproduced("table1", options_of(root, out, overrides=oe, **chosen))
    overview, by_class = report.tables
    cells = dict(zip(by_class.columns, by_class.rows["trouser"], strict=True))
    assert set(cells["FCDD"].measured) == {0, 1}
    assert cells["FCDD"].published is not None
    assert (cells["FCDD"].published.value, cells["Deep SVDD"].text(), cells["HSC"].published) == (0.98, "0.90*", None)
    mean = dict(zip(overview.columns, overview.rows["Fashion-MNIST"], strict=True))["FCDD"]
    assert mean.published is not None
    assert mean.published.value == pytest.approx((0.98 + 0.82) / 2)  # of the two classes that ran
    text = files[0].read_text()
    assert "Budget smoke: fmnist 1 of the paper's 400 epochs; 2 seeds (0, 1) where the paper has five" in text
    assert "Fashion-MNIST idx, 32 of 60,000 training and 16 of 10,000 test images" in text
    assert "FCDD: 2 of 10 classes ran" in text


def test_table2_sigma_and_heatmaps_share_their_model(root: Path, out: Path) -> None:
    report, files = reproduced("table2", options_of(root, out))
    cells = dict(zip(report.tables[0].columns, report.tables[0].rows["bottle"], strict=True))
    for name in ("AE-SS", "AE-L2", "FCDD", "FCDD semi-supervised"):
        mean, pooled = cells[f"{name}, mean over images"], cells[f"{name}, pooled"]
        assert mean.measured != pooled.measured
        assert mean.published is not None  # as the paper words its figures
        assert pooled.published is None
    assert cells["P-NET"].text() == "0.99*"
    deviation = dict(zip(report.tables[0].columns, report.tables[0].rows["standard deviation"], strict=True))
    assert deviation["P-NET"].text() == "0.12*"
    assert deviation["FCDD, mean over images"].text() == "–"  # of one class there is none
    assert [path.name for path in report.figures] == ["table2-heatmaps.png"]
    text = files[0].read_text()
    assert "stand beside the one that the protocol has: mean over images" in text
    assert "MVTec-AD bottle, 16 training and 8 test images; one anomaly of each of 2 defect types" in text
    jobs = len(list((out / "jobs").glob("mvtec-*")))
    sigma, files = reproduced("sigma", options_of(root, out))
    assert list(sigma.tables[0].rows) == ["4", "6", "8", "10", "12", "14", "16"]
    # At the recipe's own σ the saved model has the figure of its run.
    assert sigma.tables[0].rows["4"][1].mean == pytest.approx(cells["FCDD, mean over images"].mean, abs=1e-6)
    assert len({cells[1].mean for cells in sigma.tables[0].rows.values()}) > 3
    assert sigma.tables[0].rows["4"][0].published is None  # one class is no match for the mean of fifteen
    assert "The paper's means over all classes, not compared: 4: 0.8567" in files[0].read_text()
    assert {path.suffix for path in files} == {".md", ".csv", ".tex", ".html", ".png", ".pdf"}
    assert [path.name for path in sigma.figures] == ["sigma.png", "sigma-heatmaps.png"]
    heatmaps, files = reproduced("heatmaps", options_of(root, out, datasets=("mvtec",)))
    assert len(list((out / "jobs").glob("mvtec-*"))) == jobs + 1  # HSC
    assert len(heatmaps.figures) == 4
    sheet = Image.open(heatmaps.figures[0])
    assert sheet.height > 5 * 112  # input, FCDD, gradient, autoencoder, truth
    assert all(cell.measured for cell in heatmaps.tables[0].rows["mvtec bottle"])


def test_the_authors_protocol_runs_and_is_stated(root: Path, out: Path) -> None:
    chosen = {"protocol": "authors", "methods": ("fcdd", "fcdd semi-supervised")}
    tasks = EXPERIMENTS["table2"].plan(options_of(root, out, **chosen))
    assert [task.job.recipe.objective for task in tasks] == ["authors", "pixelwise"]
    plain = {**chosen, "overrides": {}}
    assert {t.job.recipe.augment for t in EXPERIMENTS["table2"].plan(options_of(root, out, **plain))} == {"mvtec"}
    plain["protocol"] = "paper"
    assert {t.job.recipe.augment for t in EXPERIMENTS["table2"].plan(options_of(root, out, **plain))} == {"mvtec-crop"}
    assert [task.job.authors_protocol for task in tasks] == [False, True]
    chosen["methods"] = ("fcdd semi-supervised",)
    report, files = reproduced("table2", options_of(root, out, **chosen))
    cells = dict(zip(report.tables[0].columns, report.tables[0].rows["bottle"], strict=True))
    assert cells["FCDD semi-supervised, pooled"].published is not None  # the authors' code pools all pixels
    assert cells["FCDD semi-supervised, mean over images"].published is None
    assert "Protocol: the authors’ code" in files[0].read_text()
    assert "kept in the test set (authors' protocol)" in files[0].read_text()


def test_oe_source_and_oe_size(root: Path, out: Path) -> None:
    small = {"batch": 8}
    report, files = reproduced("oe-source", options_of(root, out, overrides=small, classes=("trouser",)))
    assert "Changed from the recipe: batch = 8." in files[0].read_text()
    assert "Shortened: the learning rate falls to zero over the last 50% of the training." in files[0].read_text()
    cifar100, emnist = report.tables[0].rows["trouser"]
    assert cifar100.published is not None
    assert emnist.published is None
    assert emnist.measured
    chosen, ledger = options_of(root, out, overrides=small), Ledger(out)
    tasks = EXPERIMENTS["oe-size"].plan(chosen)
    assert [task.job.recipe.exposure_limit for task in tasks] == [2, 8, 128, 2048, 0] * 2 + [0]
    assert [task.job.recipe.method for task in tasks] == ["fcdd"] * 5 + ["hsc"] * 5 + ["ae"]
    for task in (tasks[0], tasks[4], tasks[9], tasks[10]):
        assert ledger.execute(task) == "done", ledger.failure(task)
    report, files = publish("oe-size", chosen, ledger, tasks)
    measured = {row: bool(cells[0].measured) for row, cells in report.tables[0].rows.items()}
    assert measured == {"fcdd 2": True, "fcdd 8": False, "fcdd 128": False, "fcdd 2048": False, "fcdd all": True}
    assert [path.name for path in report.figures] == ["oe-size-heatmaps-blurred.png", "oe-size-heatmaps-raw.png"]
    blurred, raw = (np.asarray(Image.open(path)).astype(int) for path in report.figures)
    assert blurred.shape[1] > 5 * 112  # input, two of FCDD, one gradient, autoencoder
    assert blurred.shape == raw.shape
    assert np.abs(blurred - raw).max() > 0


def test_two_corpora_side_by_side_name_both_in_the_file(root: Path, out: Path) -> None:
    small = {"batch": 8}
    chosen = options_of(root, out, overrides=small, corpus="mnist")
    report, files = reproduced("oe-heatmaps", chosen)
    assert [path.name for path in report.figures] == [
        "oe-heatmaps-trouser-cifar100-mnist-blurred.png",
        "oe-heatmaps-trouser-cifar100-mnist-raw.png",
    ]
    assert Image.open(report.figures[0]).width > 16 * 112  # eight columns a corpus
    assert all(cell.measured for cell in report.tables[0].rows["trouser"])
    assert "MNIST digits, test images (24)" in files[0].read_text()
    report, _ = reproduced("oe-source", options_of(root, out, overrides=small, corpus="mnist", classes=("trouser",)))
    assert list(report.tables[0].columns) == ["CIFAR-100", "MNIST in place of EMNIST"]


def test_confetti_is_shown_without_training(root: Path, tmp_path: Path) -> None:
    report, _ = reproduced("confetti", options_of(root, tmp_path))
    assert [path.name for path in report.figures] == ["confetti.png"]
    assert not (tmp_path / "jobs").exists()


def test_receptive_fields_are_the_papers(root: Path, out: Path) -> None:
    tasks = EXPERIMENTS["receptive-field"].plan(options_of(root, out, classes=("airplane", "bottle"), overrides={}))
    fields = {"cifar10": [], "mvtec": []}  # type: dict[str, list[str]]
    for task in tasks:
        fields[task.job.recipe.dataset].append(task.column)
        from fcdd.training.methods import build

        assert build(task.job.recipe).field.size == int(task.column)  # type: ignore[union-attr]
    assert fields["cifar10"] == [str(size) for size in range(18, 33, 2)]
    assert fields["mvtec"] == ["53", "91", "129", "167", "205", "243"]
    ledger = Ledger(out)
    chosen = options_of(root, out, datasets=("cifar10",), classes=("airplane",), overrides={"batch": 8})
    tasks = EXPERIMENTS["receptive-field"].plan(chosen)
    for task in tasks[:2]:
        assert ledger.execute(task) == "done", ledger.failure(task)
    report, files = publish("receptive-field", chosen, ledger, tasks)
    assert [bool(cells[1].measured) for cells in report.tables[0].rows.values()] == [True, True] + [False] * 6
    assert "2 of 8 jobs done" in files[0].read_text()
    assert len(report.figures) == 2


def test_clever_hans_gives_numbers_and_images(root: Path, out: Path) -> None:
    report, files = reproduced("clever-hans", options_of(root, out))
    rows = report.tables[0].rows
    assert all(cell.measured for cells in rows.values() for cell in cells)
    letters, box = (
        rows[f"marked horses: share of area of {what}"][0].mean for what in ("the letters", "the box around them")
    )
    assert letters is not None
    assert box is not None
    assert 0 < letters < box < 1
    text = files[0].read_text()
    assert "is on 2 of 10 training horses and nowhere else" in text
    assert "ImageNet, 8 nominal images of train and 8 of val" in text
    assert "2 horses bear a photographer's real mark; they are neither in training nor among the test" in text
    real = [
        f"the place of the real mark, lower left: share of {what}" for what in ("heat, horses that bear it", "area")
    ]
    assert [rows[name][0].mean is not None for name in real] == [True, True]
    assert [path.name for path in report.figures] == [
        "clever-hans-marked.png",
        "clever-hans-marked-real.png",
        "clever-hans-clean.png",
        "clever-hans-clean-real.png",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table9"], "no experiment 'table9'; there are clever-hans, confetti, heatmaps, oe-heatmaps"),
        (["table1", "--classes", "sofa", "--datasets", "fmnist"], "no class 'sofa' in fmnist; there are t-shirt"),
        (["table1", "--methods", "magic"], "no method magic here; there are ae, svdd, geo, geo+"),
        (["table1", "--budget", "huge"], "there are smoke, short, paper"),
        (["table1", "--protocol", "mine"], "there are paper and authors"),
        (["clever-hans"], "VOCdevkit/VOC2007/JPEGImages"),
        (["table2", "--on", "moon", "--status"], "choose local, ray or ray:ADDRESS"),
        (["oe-source", "--classes", "trouser", "--on", "moon"], "choose local, ray or ray:ADDRESS"),
    ],
)
def test_bad_input_is_code_2_with_the_remedy(tmp_path: Path, arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["reproduce", *arguments, "--data", str(tmp_path), "-o", str(tmp_path / "o")])
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_failed_job_is_told_once_and_the_exit_code_says_so(root: Path, tmp_path: Path) -> None:
    common = [
        "reproduce",
        "table1",
        "--datasets",
        "fmnist",
        "--methods",
        "fcdd",
        "--classes",
        "t-shirt,trouser",
        "--budget",
        "smoke",
        "--data",
        str(root),
    ]
    command = [*common, "--oe", "imagenet22k", "-o", str(tmp_path)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1
    assert "failed: fmnist t-shirt, fcdd, seed 0 and 1 more: DataError" in result.stdout
    status = json.loads(CliRunner().invoke(app, [*command, "--status", "--json"]).stdout)
    assert (status["failed"], status["left"]) == (2, 0)
    assert "Traceback" in status["failures"][0]["traceback"]


def test_a_stand_in_trunk_is_for_the_nets_that_have_one(root: Path, out: Path) -> None:
    options = Options(data=root, output=out, trunk="vgg16", corpus="emnist", random_start=True)
    chosen = {name: options.tasks(name, ["x"], "c")[0].job.recipe for name in ("fmnist", "mvtec", "voc", "imagenet")}
    assert [one.network for one in chosen.values()] == ["fmnist", "vgg16", "vgg16", "vgg16"]
    assert [one.pretrained for one in chosen.values()] == [False, True, False, False]  # as in the paper
    assert [one.exposure for one in chosen.values()] == ["emnist", "confetti", "labelled", "emnist"]


def test_other_classes_than_the_papers_are_not_compared(root: Path, tmp_path: Path) -> None:
    folders = [tmp_path / "imagenette" / part / f"n0000000{n}" for part in ("train", "val") for n in range(2)]
    for number, folder in enumerate(folders):
        folder.mkdir(parents=True)
        for index in range(4):
            Image.new("RGB", (40, 40), (60 * number, 20 * index, 90)).save(folder / f"{index}.png")
    small = {**SMALL, "exposure": f"folder:{root / 'aux'}"}
    chosen = {"datasets": ("imagenet",), "methods": ("fcdd",), "data": tmp_path, "overrides": small, "epochs": 1}
    chosen["budget"] = "short"
    report, files = reproduced("table1", options_of(root, tmp_path / "out", **chosen))
    cells = dict(zip(report.tables[0].columns, report.tables[0].rows["ImageNet-30"], strict=True))
    assert cells["FCDD"].measured
    assert cells["FCDD"].published is None
    assert cells["HSC"].text() == "0.97*"
    text = files[0].read_text()
    assert "2 classes that are not the paper's 30" in text
    assert list(report.tables[1].rows) == ["n00000000", "n00000001", "mean"]


def test_options_name_what_there_is(root: Path, tmp_path: Path) -> None:
    options = Options(data=root, output=tmp_path, budget="paper")
    tasks = options.tasks("fmnist", ["trouser"], "fcdd")
    assert ([task.job.seed for task in tasks], tasks[0].job.recipe.epochs) == ([0, 1, 2, 3, 4], 400)
    assert options.classes_of("mvtec") == ["bottle"]
    assert len(Options(data=tmp_path, output=tmp_path).classes_of("imagenet")) == 30
    (tmp_path / "imagenette" / "train" / "n01440764").mkdir(parents=True)
    assert Options(data=tmp_path, output=tmp_path).classes_of("imagenet") == ["n01440764"]
    with pytest.raises(DataError):
        Options(data=root, output=tmp_path, classes=("bottle",)).check_classes(["fmnist"])
    with pytest.raises(FcddError):
        options.chosen(["a"], "datasets") and Options(data=root, output=tmp_path, budget="x")


def test_the_status_of_the_last_run_needs_no_options(root: Path, tmp_path: Path) -> None:
    chosen = ["--datasets", "fmnist", "--methods", "fcdd", "--classes", "trouser", "--epochs", "1", "--seeds", "1"]
    set_ = ["--set", "batch=8", "--oe", f"folder:{root / 'aux'}", "--data", str(root)]
    output = ["-o", str(tmp_path)]
    kept = ["--keep", str(tmp_path / "kept")]
    result = CliRunner().invoke(app, ["reproduce", "table1", *chosen, *set_, *output, *kept, "--json"])
    assert result.exit_code == 0, result.stderr
    assert json.loads(next((tmp_path / "kept").glob("*.json")).read_text())["column"] == "fcdd"
    status = json.loads(CliRunner().invoke(app, ["reproduce", "table1", "--status", "--json", *output]).stdout)
    assert (status["done"], status["left"]) == (1, 0)
    # What never ran here is counted by the options given.
    status = json.loads(
        CliRunner().invoke(app, ["reproduce", "oe-source", "--status", "--json", *output, "--seeds", "2"]).stdout
    )
    assert (status["done"], status["left"]) == (0, 40)


def test_the_help_names_every_experiment() -> None:
    told = CliRunner().invoke(app, ["reproduce", "--help"]).stdout
    assert all(f"{name}: " in told for name in EXPERIMENTS)


def test_two_classes_have_a_figure_together(root: Path, tmp_path: Path) -> None:
    small = {"batch": 8, "exposure": f"folder:{root / 'aux'}"}
    chosen = {"datasets": ("fmnist",), "methods": ("fcdd",), "classes": ("trouser", "0"), "overrides": small}
    report, _ = reproduced("heatmaps", options_of(root, tmp_path, **chosen))
    names = [path.name for path in report.figures]
    assert "heatmaps-fmnist-folder-classes-blurred.png" in names
    assert len(names) == 2 * 4 + 2
    sheet = Image.open(tmp_path / "heatmaps-fmnist-folder-classes-blurred.png")
    assert sheet.width > 16 * 112 > 3 * 112 > sheet.height > 2 * 112  # two classes a band, two rows each


def test_all_experiments_run_end_to_end_in_the_smoke_budget(root: Path, tmp_path: Path) -> None:
    """On small data, with the paper's own networks: the large ones at 32 px."""
    shutil.copytree(root, tmp_path / "data", symlinks=True)
    (tmp_path / "data" / "imagenet22k" / "n00000001").mkdir(parents=True)
    for index in range(4):
        Image.new("RGB", (40, 40), (200, 60 * index, 20)).save(tmp_path / "data/imagenet22k/n00000001" / f"{index}.png")
    command = ["reproduce", "all", "--budget", "smoke", "--weights", "none", "--data", str(tmp_path / "data")]
    result = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "out"), "--json"])
    assert result.exit_code == 0, result.stdout[-2000:] + result.stderr
    told = json.loads(result.stdout)
    assert told["status"]["failed"] == told["status"]["left"] == 0
    assert told["status"]["done"] > 40
    for name in EXPERIMENTS:
        assert (tmp_path / "out" / f"{name}.md").stat().st_size > 0
    assert all(Path(path).stat().st_size > 0 for path in told["files"])
    status = CliRunner().invoke(app, ["reproduce", "all", "--status", "-o", str(tmp_path / "out"), "--json"])
    assert json.loads(status.stdout)["done"] == told["status"]["done"]


@pytest.mark.parametrize("option", [["--classes", "trouser"], ["--datasets", "fmnist"], ["--keep", "x"]])
def test_all_experiments_take_no_choice_that_only_some_have(option: list[str], tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["reproduce", "all", *option, "--data", str(tmp_path), "-o", str(tmp_path / "o")])
    assert result.exit_code == 2
    assert "not with all" in result.stderr
