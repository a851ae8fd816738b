"""What every dataset and corpus promises, and what the paper says of each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fcdd.data import CORPORA, DATASETS
from fcdd.training import recipe


def test_every_dataset_has_a_recipe_of_its_own_or_shares_one() -> None:
    assert {recipe.load(name).dataset for name in recipe.names()} == set(DATASETS)


@pytest.mark.parametrize("name", list(DATASETS))
def test_a_dataset_says_all_that_the_program_needs(name: str, tmp_path: Path) -> None:
    dataset = DATASETS[name]
    assert dataset.title
    assert 0 < dataset.eta < 1
    assert 1 <= dataset.smoke["epochs"] <= dataset.short < recipe.load(name).epochs
    recipe.load(name, dataset.smoke)
    assert dataset.present(tmp_path) == list(dataset.classes)  # an empty folder: a message can name them all
    for one in dataset.classes:
        assert dataset.named(one.upper(), tmp_path) == one
    assert dataset.named("sofa", tmp_path) is None
    assert all(pattern.format(normal="x") for pattern in dataset.files)


def test_the_papers_quantiles() -> None:
    etas = {name: dataset.eta for name, dataset in DATASETS.items()}
    assert etas == {"fmnist": 0.85, "cifar10": 0.85, "imagenet": 0.97, "mvtec": 0.97, "voc": 0.99, "voc-others": 0.99}
    assert {name: d.class_eta for name, d in DATASETS.items() if d.class_eta} == {"mvtec": 0.99}


def test_words_for_classes(tmp_path: Path) -> None:
    assert DATASETS["fmnist"].named("trousers", tmp_path) == "trouser"
    assert DATASETS["cifar10"].named("0", tmp_path) == "airplane"
    assert DATASETS["imagenet"].named("n12267677", tmp_path) == "acorn"
    assert DATASETS["imagenet"].named("rotary dial telephone", tmp_path) == "dial telephone"
    (tmp_path / "imagenette" / "train" / "n01440764").mkdir(parents=True)
    assert DATASETS["imagenet"].present(tmp_path) == ["n01440764"]
    assert DATASETS["imagenet"].named("acorn", tmp_path) is None


def test_corpora() -> None:
    assert list(CORPORA) == ["cifar100", "emnist", "imagenet", "imagenet22k", "mnist"]
    assert all(corpus.files for corpus in CORPORA.values())


def test_the_names_of_the_package_need_no_torch() -> None:
    code = "import sys; from fcdd.data import Source, Split, DATASETS; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
