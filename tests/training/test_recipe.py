"""Recipes: the paper's values, overrides, and errors that name what is wrong."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from fcdd.errors import RecipeError
from fcdd.training import recipe


def test_every_recipe_of_the_package_loads_and_survives_json() -> None:
    assert {"fmnist", "cifar10", "imagenet", "mvtec", "mvtec-semi", "voc", "voc-others"} <= set(recipe.names())
    for name in recipe.names():
        loaded = recipe.load(name)
        assert recipe.from_dict(loaded.to_dict()) == loaded


def test_only_mvtec_starts_from_imagenet_weights() -> None:
    """The paper pre-trains and freezes for MVTec alone."""
    started = {name for name in recipe.names() if recipe.load(name).pretrained or recipe.load(name).freeze}
    assert started == {"mvtec", "mvtec-semi"}


def test_mvtec_has_the_papers_pipeline_and_the_codes_batch() -> None:
    for name in ("mvtec", "mvtec-semi"):
        loaded = recipe.load(name)
        assert (loaded.augment, loaded.batch, loaded.stored, loaded.size) == ("mvtec-crop", 128, 240, 224)


def test_the_papers_schedules() -> None:
    fmnist, cifar = recipe.load("fmnist"), recipe.load("cifar10")
    assert fmnist.lr_at(0) == 0.01
    assert fmnist.lr_at(10) == pytest.approx(0.01 * 0.98**10)
    assert [cifar.lr_at(e) for e in (0, 399, 400, 500)] == pytest.approx([1e-3, 1e-3, 1e-4, 1e-5])


def test_a_shortened_recipe_cools_down_over_its_second_half() -> None:
    short = recipe.load("cifar10").shortened(4)
    rates = [short.lr_at(0), short.lr_at(1, 0.9), short.lr_at(3), short.lr_at(3, 0.5)]
    assert rates == pytest.approx([1e-3, 1e-3, 0.5e-3, 0.25e-3])
    assert recipe.load("cifar10").shortened(600).cooldown == 0


def test_overrides_are_read_as_toml() -> None:
    pairs = dict(map(recipe.parse_override, ["lr=0.5", "epochs=3", "exposure=emnist", "lr_milestones=[1, 2]"]))
    loaded = recipe.load("fmnist", pairs)
    assert (loaded.lr, loaded.epochs, loaded.exposure, loaded.lr_milestones) == (0.5, 3, "emnist", (1, 2))


def test_a_method_brings_its_optimiser_unless_told_otherwise() -> None:
    plain, svdd = recipe.load("fmnist"), recipe.load("fmnist", {"method": "svdd"})
    assert (svdd.optimiser, svdd.lr, svdd.epochs) == ("adam", 1e-4, plain.epochs)
    assert recipe.load("fmnist", {"method": "svdd", "lr": 0.5}).lr == 0.5
    assert recipe.load("fmnist", {"method": "hsc"}) == dataclasses.replace(plain, method="hsc")
    with pytest.raises(RecipeError, match="must be one of fcdd, hsc, ae, svdd, sad, focal, geo, geo\\+, geo\\+oe"):
        recipe.load("fmnist", {"method": "ocsvm"})


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ({"learning_rate": 1}, "unknown recipe value learning_rate"),
        ({"epochs": "many"}, "epochs = 'many': expected int"),
        ({"epochs": True}, "expected int"),
        ({"pretrained": 1}, "expected bool"),
        ({"epochs": 0}, "must be positive"),
        ({"optimiser": "lion"}, "must be one of sgd, adam"),
        ({"lr_milestones": 3}, "list of int"),
        ({"objective": "pixelwise"}, "needs masks"),
        ({"dataset": "mnist"}, "must be one of cifar10, fmnist, imagenet"),
    ],
)
def test_bad_values_are_named(override: dict[str, object], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        recipe.load("fmnist", override)


def test_own_files_and_unknown_names(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('dataset = "fmnist"')
    with pytest.raises(RecipeError, match=r"lacks .*batch"):
        recipe.load(str(path))
    path.write_text("dataset = ")
    with pytest.raises(RecipeError, match="not a TOML file"):
        recipe.load(str(path))
    with pytest.raises(RecipeError, match="no recipe 'mnist'"):
        recipe.load("mnist")
    with pytest.raises(RecipeError, match="NAME=VALUE"):
        recipe.parse_override("lr")
