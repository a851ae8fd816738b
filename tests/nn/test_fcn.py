"""The paper's networks: layers, sizes, frozen parts and weights from files."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from fcdd.errors import FcddError, ModelError
from fcdd.nn.fcn import NETWORKS, parameters
from fcdd.nn.networks import build, load_weights, read_tensors


@pytest.mark.parametrize(
    ("name", "count", "shape", "cells"),
    [
        ("fmnist", 413_441, (1, 28, 28), (7, 7)),
        ("cifar", 1_185_281, (3, 32, 32), (8, 8)),
        ("vgg11", 4_504_833, (3, 224, 224), (28, 28)),
        ("cifar-field", 594_689, (3, 32, 32), (8, 8)),
    ],
)
def test_parameters_and_output_size(name: str, count: int, shape: tuple[int, ...], cells: tuple[int, int]) -> None:
    network = build(name).eval()
    assert parameters(network) == count
    with torch.no_grad():
        assert network(torch.rand(2, *shape)).shape == (2, 1, *cells)


@pytest.mark.parametrize("name", NETWORKS)
def test_any_input_size_and_any_dimension(name: str) -> None:
    network = build(name, dimensions=5).eval()
    with torch.no_grad():
        height, width = network(torch.rand(1, network.channels, 40, 56)).shape[2:]
    assert (height, width) == (40 // network.field.stride, 56 // network.field.stride)


def test_too_small_and_wrongly_coloured_inputs_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 4 px"):
        build("cifar")(torch.rand(1, 3, 3, 3))
    with pytest.raises(ValueError, match=r"\(N, 1, H, W\)"):
        build("fmnist")(torch.rand(1, 3, 28, 28))


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    with pytest.raises(FcddError, match="there are cifar, cifar-field, fmnist"):
        build("resnet")
    with pytest.raises(ValueError, match="odd"):
        build("cifar-field", kernel=4)


def test_frozen_layers_do_not_move_and_their_norms_do_not_learn() -> None:
    network = build("vgg11")
    network.freeze(3)
    network.train()
    assert parameters(network, trainable=True) == 3_542_529
    before = {k: v.clone() for k, v in network.state_dict().items()}
    optimizer = torch.optim.SGD([p for p in network.parameters() if p.requires_grad], lr=0.1)
    network(torch.rand(2, 3, 32, 32)).sum().backward()
    optimizer.step()
    moved = {k for k, v in network.state_dict().items() if not torch.equal(v, before[k])}
    assert {k.split(".")[1] for k in moved if k.startswith("features")} == {"15", "16", "18", "19"}


def test_torchvision_keys_load_and_the_head_stays(tmp_path: Path) -> None:
    donor, network = build("vgg11"), build("vgg11")
    tensors = {k: v + 1 for k, v in donor.state_dict().items() if k.startswith("features.") and v.is_floating_point()}
    tensors["features.22.weight"] = torch.zeros(3)  # later layers of the full network
    tensors["classifier.0.weight"] = torch.zeros(3)
    head = network.head.weight.clone()
    for path in (tmp_path / "w.safetensors", tmp_path / "w.pth"):
        save_file(tensors, path) if path.suffix == ".safetensors" else torch.save(tensors, path)
        load_weights(network, "vgg11", path)
        assert torch.equal(network.features[18].weight, tensors["features.18.weight"])
        assert torch.equal(network.head.weight, head)


def test_weights_that_do_not_fit_say_why(tmp_path: Path) -> None:
    network = build("vgg11")
    with pytest.raises(ModelError, match=r"pass --weights FILE .* with torchvision's vgg11_bn"):
        load_weights(network, "vgg11", None)
    with pytest.raises(ModelError, match="no such file"):
        load_weights(network, "vgg11", tmp_path / "absent.pth")
    (tmp_path / "noise.pth").write_bytes(b"not weights")
    with pytest.raises(ModelError, match="not a readable weights file"):
        load_weights(network, "vgg11", tmp_path / "noise.pth")
    save_file({"features.0.weight": torch.zeros(64, 3, 3, 3)}, tmp_path / "part.safetensors")
    with pytest.raises(ModelError, match=r"features\.0\.bias"):
        load_weights(network, "vgg11", tmp_path / "part.safetensors")
    save_file({"features.0.weight": torch.zeros(64, 1, 3, 3)}, tmp_path / "grey.safetensors")
    with pytest.raises(ModelError, match="shape"):
        load_weights(network, "vgg11", tmp_path / "grey.safetensors")


def test_the_vgg16_stand_in_sees_edges(shared_weights: Path) -> None:
    network = build("vgg16").eval()
    load_weights(network, "vgg16", shared_weights / "vgg16-features-to-conv4_3-fp16.safetensors")
    flat, edge = torch.zeros(1, 3, 64, 64), torch.zeros(1, 3, 64, 64)
    edge[..., 32:] = 2.0
    with torch.no_grad():
        change = (network.features[:2](edge) - network.features[:2](flat)).abs().sum(1)[0]
    assert change[32, 31:33].max() > 3 * change[32, 10]


def test_vgg16_takes_inputs_of_any_offset_and_scale() -> None:
    """Its norm-free layers need standardised input, whatever the preprocessing hands over."""
    torch.manual_seed(0)
    network = build("vgg16").train()
    images = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        assert torch.allclose(network(images), network(40 * images - 7), atol=1e-3)


def test_all_stages_frozen_leave_norm_and_head_to_learn() -> None:
    network = build("vgg16")
    network.freeze(4)
    assert {name.split(".")[0] for name, p in network.named_parameters() if p.requires_grad} == {"norm", "head"}
    with pytest.raises(ValueError, match="4 stages"):
        network.freeze(5)


class Malice:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {self.target}",)


def test_a_malicious_weights_file_runs_nothing(tmp_path: Path) -> None:
    torch.save({"features.0.weight": Malice(tmp_path / "touched")}, tmp_path / "harm.pth")
    with pytest.raises(ModelError, match=r"harm\.pth"):
        load_weights(build("vgg11"), "vgg11", tmp_path / "harm.pth")
    assert not (tmp_path / "touched").exists()


def test_a_weights_file_that_is_not_what_its_name_says_is_refused(tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(2)}, tmp_path / "plain.pth")
    digest = hashlib.sha256((tmp_path / "plain.pth").read_bytes()).hexdigest()
    for named, fits in ((digest[:8], True), ("0123abcd", False)):
        path = (tmp_path / "plain.pth").rename(tmp_path / f"vgg11_bn-{named}.pth")
        if fits:
            assert torch.equal(read_tensors(path)["a"], torch.zeros(2))
            path.rename(tmp_path / "plain.pth")
        else:
            with pytest.raises(ModelError, match="is not the one in its name"):
                read_tensors(path)
