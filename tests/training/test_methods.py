"""Every method learns, explains itself and is used alike; each keeps the promises of its own."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fcdd.data import Split
from fcdd.errors import ModelError, RecipeError
from fcdd.nn import attribution
from fcdd.nn.baselines import Dense
from fcdd.paper.model import PaperModel, evaluate
from fcdd.training import geometry, loop
from fcdd.training.methods import METHODS, Batch, Collapse, build, method_of
from fcdd.training.recipe import Recipe

from .. import toy

# What each needs to learn the toy problem in seconds.
OVERRIDES: dict[str, dict[str, object]] = {
    "hsc": {},
    "focal": {},
    "sad": {"lr": 1e-4, "epochs": 4},
    "svdd": {"lr": 1e-3, "epochs": 4},
    "ae": {"lr": 1e-3, "epochs": 24},
    "ae-ssim": {"lr": 1e-3, "epochs": 12, "reconstruction": "ssim"},
    "geo": {"optimiser": "adam", "lr": 1e-3, "epochs": 4},
    "geo+": {"optimiser": "adam", "lr": 1e-3, "epochs": 4},
    "geo+oe": {"optimiser": "adam", "lr": 1e-3, "epochs": 4},
}


def small_split() -> Split:
    """Every third test image of the toy problem: GEO looks at each 24 times."""
    split = toy.toy_split()
    return replace(split, test=split.test[::3], labels=split.labels[::3], kinds=split.kinds[::3])


@pytest.fixture(scope="module", params=list(OVERRIDES))
def trained(request: pytest.FixtureRequest) -> tuple[PaperModel, float]:
    """A trained model of each method, and the AUROC before training."""
    name = request.param.removesuffix("-ssim")
    model, supply = toy.toy_training(method=name, **OVERRIDES[request.param])
    untrained = evaluate(model, small_split(), quiet=True).image_auroc
    loop.train(model.network, supply, seed=0, quiet=True)
    return model, untrained


def test_training_beats_the_untrained_network(trained: tuple[PaperModel, float]) -> None:
    model, untrained = trained
    after = evaluate(model, small_split(), quiet=True).image_auroc
    assert after > 0.95
    assert after > untrained


def test_a_heatmap_comes_with_the_score_and_can_be_blurred(trained: tuple[PaperModel, float]) -> None:
    model, _ = trained
    images = toy.toy_split().test[:5]
    scores, maps = model.explain(images)
    assert maps.shape == (5, 1, 28, 28)
    assert torch.allclose(scores, model.scores(images), atol=1e-4, rtol=1e-4)
    assert torch.equal(maps, model.heatmaps(images))
    assert (maps >= 0).all()
    assert maps.flatten(1).std(1).min() > 0
    sharp = PaperModel(model.network, model.preprocess, replace(model.recipe, blur=False)).heatmaps(images)
    assert torch.allclose(maps, attribution.blur(sharp, model.recipe.sigma, size=16))


def test_a_saved_model_scores_the_same(trained: tuple[PaperModel, float], tmp_path: Path) -> None:
    model, _ = trained
    images = toy.toy_split().test[::10]
    model.save(tmp_path / "m.safetensors", 0, toy.toy_split())
    assert torch.equal(PaperModel.load(tmp_path / "m.safetensors").scores(images), model.scores(images))


def recipe_of(method: str, **overrides: object) -> Recipe:
    return toy.toy_recipe(method=method, **overrides)


@pytest.mark.parametrize("method", list(METHODS))
def test_only_methods_that_take_anomalies_get_some(method: str) -> None:
    _, supply = toy.toy_training(method=method)
    batch = supply.draw(torch.arange(64), torch.Generator().manual_seed(0))
    assert METHODS[method].nominal_only == (method in ("ae", "svdd", "geo", "geo+"))
    if method.startswith("geo"):
        assert len(batch.y[batch.y >= 0].unique()) > 10  # transformations
        assert bool((batch.y < 0).any()) == (method == "geo+oe")  # auxiliary anomalies
    else:
        assert batch.y.unique().tolist() == ([0] if METHODS[method].nominal_only else [0, 1])


def test_the_centre_is_the_mean_of_the_first_outputs_kept_off_zero() -> None:
    model, supply = toy.toy_training(method="svdd")
    network = copy.deepcopy(model.network).train()
    assert isinstance(network, Dense)
    assert isinstance(model.network, Dense)
    method_of(model.recipe, model.network).begin(supply.nominal_inputs(quiet=True))
    with torch.no_grad():
        mean = torch.cat([network(images) for images in supply.nominal_inputs(quiet=True)]).mean(0)
    kept = mean.abs() >= 0.1
    assert 0 < kept.sum() < len(kept)
    assert torch.allclose(model.network.centre[kept], mean[kept], atol=1e-5)
    assert torch.equal(model.network.centre[~kept], torch.where(mean[~kept] < 0, -0.1, 0.1))


@pytest.mark.parametrize("method", ["svdd", "sad"])
def test_a_network_that_tells_nothing_apart_is_reported(method: str) -> None:
    model, supply = toy.toy_training(method=method)
    assert isinstance(model.network, Dense)
    torch.nn.init.zeros_(model.network.head[-1].weight)  # type: ignore[arg-type]
    with pytest.raises(Collapse, match="same output"):
        loop.train(model.network, supply, seed=0, quiet=True)


def test_geo_scores_by_the_log_probability_of_the_right_transformation() -> None:
    model, _ = toy.toy_training(method="geo")
    network = model.network.eval()
    x = torch.rand(3, 1, 28, 28)
    expected = torch.zeros(3)
    with torch.no_grad():
        for index in range(24):
            turned = x[..., torch.arange(28)]
            if index % 3 == 1:
                turned = torch.cat([turned[..., 1:8].flip(3), turned[..., :-7]], 3)
            if index % 3 == 2:
                turned = torch.cat([turned[..., 1:8, :].flip(2), turned[..., :-7, :]], 2)
            turned = turned.flip(3) if index // 3 % 2 else turned
            expected -= network(torch.rot90(turned, index // 6, (2, 3))).softmax(1)[:, index].log() / 24
        assert torch.allclose(method_of(model.recipe, model.network).scores(x), expected, atol=1e-4)


def test_geo_plus_scores_by_its_three_heads_and_learns_to_be_unsure_of_anomalies() -> None:
    model, _ = toy.toy_training(method="geo+oe")
    network, method = model.network.eval(), method_of(model.recipe, model.network)
    x = torch.rand(3, 1, 28, 28)
    with torch.no_grad():
        expected = torch.zeros(3)
        for index in range(36):
            turn, across, down = index // 9, index // 3 % 3, index % 3
            heads = network(geometry.combined(x, index)).split((4, 3, 3), 1)
            for head, right in zip(heads, (turn, across, down), strict=True):
                expected -= head.log_softmax(1)[:, right] / 36
        assert torch.allclose(method.scores(x), expected, atol=1e-4)
        batch = Batch(x, torch.tensor([-1, -1, -1]), torch.zeros(3, 1, 28, 28))
        flat, sure = torch.zeros(3, 10), 5 * torch.eye(10)[:3]
        least = 0.5 * sum(torch.tensor(float(count)).log() for count in (4, 3, 3))
        assert torch.isclose(method.loss(flat, batch), torch.as_tensor(least))
        assert method.loss(sure, batch) > method.loss(flat, batch)


def test_integrated_gradients_are_offered_as_a_heatmap() -> None:
    model, _ = toy.toy_training(method="hsc", attribution="integrated", blur=False)
    maps = model.heatmaps(toy.toy_split().test[:2])
    plain = PaperModel(model.network, model.preprocess, replace(model.recipe, attribution="gradient"))
    assert maps.shape == (2, 1, 28, 28)
    assert not torch.allclose(maps, plain.heatmaps(toy.toy_split().test[:2]))
    black = maps[0, 0][plain._input(toy.toy_split().test[:1])[0, 0] == 0]
    assert (black == 0).all()


def test_a_size_without_networks_and_a_map_that_is_not_there_are_named() -> None:
    with pytest.raises(RecipeError, match="size = 64: method = 'hsc' has networks for 28, 32, 224"):
        build(recipe_of("hsc", size=64))
    with pytest.raises(ModelError, match="method 'ae' has no map A"):
        toy.toy_training(method="ae")[0].A(toy.toy_split().test[:1])
