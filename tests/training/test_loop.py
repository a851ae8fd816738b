"""Training: it learns, it repeats, it survives being killed, and it draws what the paper says."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from fcdd.errors import ModelError
from fcdd.interrupt import Interrupted
from fcdd.nn import objectives
from fcdd.nn import preprocess as preprocessing
from fcdd.nn.networks import build
from fcdd.nn.upsampling import upsample
from fcdd.paper.model import PaperModel, evaluate
from fcdd.training import loop
from fcdd.training.loop import Supply
from fcdd.training.losses import LOSSES
from fcdd.training.methods import Batch

from .. import toy


def weights(model: PaperModel) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.network.state_dict().values()])


class InterruptingSupply(Supply):
    """Presses Ctrl-C while the sixth batch is drawn, in the second epoch of four steps each."""

    drawn = itertools.count(1)

    def draw(self, indices: torch.Tensor, generator: torch.Generator) -> loop.Batch:
        if next(self.drawn) % 6 == 0:
            os.kill(os.getpid(), signal.SIGINT)
        return super().draw(indices, generator)


def test_a_trained_network_beats_the_untrained_one() -> None:
    model, supply = toy.toy_training()
    untrained = evaluate(model, toy.toy_split(), quiet=True).image_auroc
    history = loop.train(model.network, supply, seed=0, quiet=True)
    trained = evaluate(model, toy.toy_split(), quiet=True).image_auroc
    assert trained > 0.98 > untrained
    assert history.losses[-1] < 0.5 * history.losses[0]
    assert history.samples == 3 * 64


def test_a_seed_repeats_and_another_differs() -> None:
    ends = []
    for seed in (0, 0, 1):
        model, supply = toy.toy_training(epochs=1)
        loop.train(model.network, supply, seed=seed, quiet=True)
        ends.append(weights(model))
    assert torch.equal(ends[0], ends[1])
    assert not torch.equal(ends[0], ends[2])


@pytest.mark.parametrize(
    "overrides",
    [{"optimiser": "sgd"}, {"optimiser": "adam"}, {"method": "svdd"}, {"method": "geo"}],
    ids=str,
)
def test_ctrl_c_saves_and_the_resumed_run_ends_bit_identical(tmp_path: Path, overrides: dict[str, object]) -> None:
    path = tmp_path / "c.safetensors"
    whole, supply = toy.toy_training(**overrides)
    losses = loop.train(whole.network, supply, seed=0, quiet=True).losses
    stopped, supply = toy.toy_training(**overrides)
    supply = InterruptingSupply(**vars(supply))
    with pytest.raises(Interrupted, match="stopped in epoch 2 of 3"):
        loop.train(stopped.network, supply, seed=0, checkpoint_path=path, quiet=True)
    resumed, supply = toy.toy_training(**overrides)
    again = loop.train(resumed.network, supply, seed=0, checkpoint_path=path, quiet=True).losses
    assert torch.equal(weights(whole), weights(resumed))
    assert again == losses


def test_a_run_killed_at_random_moments_ends_bit_identical(tmp_path: Path) -> None:
    def launch(folder: Path) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"}
        return subprocess.Popen([sys.executable, "-m", "tests.toy", str(folder)], env=environment)

    assert launch(tmp_path / "whole").wait() == 0
    chance = random.Random(0)
    killed = 0
    while killed < 3:
        process = launch(tmp_path / "killed")
        while not (tmp_path / "killed" / "checkpoint.safetensors").exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.6) if killed else 0.05)
        process.kill()
        killed += process.wait() == -signal.SIGKILL
        if (tmp_path / "killed" / "model.safetensors").exists():
            break
    assert killed
    assert launch(tmp_path / "killed").wait() == 0
    models = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "killed")]
    assert models[0] == models[1]


def test_a_training_that_diverges_stops_and_says_so() -> None:
    model, supply = toy.toy_training(method="ae", optimiser="sgd", lr=1e6)
    with pytest.raises(loop.Diverged, match="lower the learning rate"):
        loop.train(model.network, supply, seed=0, quiet=True)


def test_a_checkpoint_of_another_training_is_refused(tmp_path: Path) -> None:
    model, supply = toy.toy_training(epochs=1)
    loop.train(model.network, supply, seed=0, checkpoint_path=tmp_path / "c", quiet=True)
    other, supply = toy.toy_training(epochs=1, lr=0.5)
    with pytest.raises(ModelError, match="another lr; choose another output folder"):
        loop.train(other.network, supply, seed=0, checkpoint_path=tmp_path / "c", quiet=True)


def test_half_of_the_nominal_samples_give_way_to_anomalies() -> None:
    nominal = torch.zeros(4000, 1, 8, 8, dtype=torch.uint8)
    white = torch.full((5, 1, 8, 8), 255, dtype=torch.uint8)
    plain = preprocessing.Preprocess("none")
    batch = Supply(toy.toy_recipe(size=8), nominal, white, None, plain).draw(
        torch.arange(4000), torch.Generator().manual_seed(0)
    )
    assert abs(batch.y.mean().item() - 0.5) < 0.03
    assert torch.equal(batch.images.mean((1, 2, 3)), batch.y)
    assert torch.equal(batch.masks.float().mean((1, 2, 3)), batch.y)


def test_labelled_anomalies_bring_their_masks() -> None:
    masks = torch.zeros(2, 1, 8, 8, dtype=torch.uint8)
    masks[1, :, :4] = 1
    anomalies = masks * 255
    nominal = torch.full((50, 1, 8, 8), 100, dtype=torch.uint8)
    supply = Supply(toy.toy_recipe(size=8), nominal, anomalies, masks, preprocessing.Preprocess("none"))
    batch = supply.draw(torch.arange(50), torch.Generator().manual_seed(0))
    anomalous = batch.y == 1
    assert torch.equal(batch.images[anomalous], batch.masks[anomalous].float())
    assert batch.masks[~anomalous].sum() == 0


def test_synthetic_anomalies_change_exactly_what_their_mask_says() -> None:
    nominal = torch.full((40, 3, 64, 64), 128, dtype=torch.uint8)
    supply = Supply(toy.toy_recipe(size=64), nominal, None, None, preprocessing.Preprocess("none"))
    batch = supply.draw(torch.arange(40), torch.Generator().manual_seed(0))
    changed = ((batch.images - 128 / 255).abs() > 1e-6).any(1, keepdim=True)
    assert torch.equal(changed.to(torch.uint8), batch.masks)
    assert torch.equal(batch.masks.flatten(1).any(1).float(), batch.y)


def test_an_epoch_is_its_passes_over_the_nominal_set() -> None:
    order = torch.cat(loop.batches_of(toy.toy_recipe(passes=3), 10, seed=0, epoch=0))
    assert torch.equal(torch.bincount(order), torch.full((10,), 3))
    assert not torch.equal(order, torch.cat(loop.batches_of(toy.toy_recipe(passes=3), 10, seed=0, epoch=1)))


@pytest.mark.parametrize("objective", ["authors", "pixelwise", "pixelwise-cells"])
def test_the_objectives_on_the_full_map_learn_too(objective: str) -> None:
    exposure = {"exposure": "confetti"} if objective.startswith("pixelwise") else {}
    model, supply = toy.toy_training(objective=objective, **exposure)
    if objective.startswith("pixelwise"):
        supply = Supply(supply.recipe, supply.nominal, None, None, supply.preprocess)
    losses = loop.train(model.network, supply, seed=0, quiet=True).losses
    assert losses[-1] < losses[0]


def test_equation_3_takes_the_map_of_algorithm_1_and_its_variant_the_level_of_the_cells() -> None:
    A = torch.rand(2, 1, 7, 7)
    masks = torch.zeros(2, 1, 28, 28, dtype=torch.uint8)
    masks[0, :, 4:12, 4:12] = 1
    batch = Batch(torch.zeros(2, 1, 28, 28), torch.tensor([1.0, 0.0]), masks)
    full = upsample(A, build("fmnist").field, 28, 1.2)
    paper = LOSSES["pixelwise"].of(A, lambda: full, batch)
    assert torch.isclose(paper, objectives.fcdd_pixelwise(full, masks))
    level = LOSSES["pixelwise-cells"].of(A, lambda: full, batch)
    assert torch.isclose(level, objectives.fcdd_pixelwise(16 * full, masks))


def test_bf16_learns_as_float32_does_with_weights_in_float32() -> None:
    losses = {}
    for precision in ("float32", "bf16"):
        model, supply = toy.toy_training(precision=precision)
        losses[precision] = loop.train(model.network, supply, seed=0, quiet=True).losses
        assert {value.dtype for value in model.network.parameters()} == {torch.float32}
        assert evaluate(model, toy.toy_split(), quiet=True).image_auroc > 0.95
    assert losses["float32"] != losses["bf16"]
    assert losses["bf16"] == pytest.approx(losses["float32"], rel=0.2, abs=0.05)
