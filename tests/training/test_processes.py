"""One training in two processes: the loss curve and the network of one process with the same batches."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from fcdd.interrupt import Interrupted
from fcdd.training import loop

from .. import toy

# 64 nominal images in batches of 21 leave one image: one of two processes has none of it, the others are uneven.
PROBLEMS: dict[str, dict[str, Any]] = {
    "fcdd": {"batch": 21, "epochs": 2},
    "svdd": {"batch": 21, "epochs": 2, "method": "svdd", "lr": 1e-5},  # norms without bias, a centre from a first pass
}
LONG = 60


def trained(folder: Path) -> None:
    """Train and write what a process ends with to `folder`, named by its rank."""
    rank = os.environ.get("RANK", "whole")
    for name, values in PROBLEMS.items():
        model, supply = toy.toy_training(**values)
        losses = loop.train(model.network, supply, 0, quiet=True).losses
        state = {key: tensor.contiguous() for key, tensor in model.network.state_dict().items()}
        save_file(state, folder / f"{name}-{rank}.st")
        (folder / f"{name}-{rank}.json").write_text(json.dumps(losses))


def stopped(folder: Path) -> None:
    """Train for long; what is said when that is stopped goes to `folder`."""
    rank = os.environ["RANK"]
    (folder / f"{rank}.pid").write_text(str(os.getpid()))
    model, supply = toy.toy_training(**PROBLEMS["fcdd"] | {"epochs": LONG})
    try:
        loop.train(model.network, supply, 0, folder / "c.safetensors", checkpoint_seconds=0.0, quiet=True)
    except Interrupted as stop:
        (folder / f"{rank}.stopped").write_text(str(stop))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one process and two made; the two then went on with a long training until one of them got a signal."""
    folder = tmp_path_factory.mktemp("runs")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"}
    environment["CUDA_VISIBLE_DEVICES"] = ""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    started = subprocess.Popen([*launcher, "-m", "tests.training.test_processes", str(folder)], env=environment)
    trained(folder)
    until = time.monotonic() + 240
    while not ((folder / "c.safetensors").exists() and (folder / "1.pid").exists()):
        assert time.monotonic() < until
        assert started.poll() is None
        time.sleep(0.02)
    os.kill(int((folder / "1.pid").read_text()), signal.SIGINT)
    assert started.wait(timeout=240) == 0
    return folder


@pytest.mark.parametrize("name", PROBLEMS)
def test_two_processes_train_as_one_does(runs: Path, name: str) -> None:
    one, *two = (json.loads((runs / f"{name}-{rank}.json").read_text()) for rank in ("whole", 0, 1))
    assert len(one) == 2
    for losses in two:
        assert losses == pytest.approx(one, rel=1e-4)
    assert two[0] == two[1]
    assert two[0] != one  # sums in another order: else each process trained alone
    alone, first, second = (load_file(runs / f"{name}-{rank}.st") for rank in ("whole", 0, 1))
    assert any(key.endswith("running_var") for key in alone)
    for key, tensor in alone.items():
        assert torch.equal(first[key], second[key]), key
        scale = tensor.float().abs().max().clamp(min=1e-3)
        assert ((first[key] - tensor).abs().max() / scale).item() < 2e-3, key


def test_a_signal_to_one_process_stops_both_after_saving(runs: Path) -> None:
    told = [(runs / f"{rank}.stopped").read_text() for rank in (0, 1)]
    assert told[0] == told[1]
    model, supply = toy.toy_training(**PROBLEMS["fcdd"] | {"epochs": LONG})
    identity = {**supply.recipe.to_dict(), "seed": 0, "samples": 64, **supply.preprocess.to_dict()}
    identity = {key: list(value) if isinstance(value, tuple) else value for key, value in identity.items()}
    optimiser = loop.make_optimiser(supply.recipe, model.network)
    at = loop.checkpoint.restore(runs / "c.safetensors", model.network, optimiser, identity)
    assert told[0] == f"stopped in epoch {at.epoch + 1} of {LONG}"


if __name__ == "__main__":
    torch.set_num_threads(1)
    trained(Path(sys.argv[1]))
    stopped(Path(sys.argv[1]))
