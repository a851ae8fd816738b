"""The baselines' networks: shapes, sizes beside the FCDD nets, and that each output sees the whole image."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from fcdd.nn.baselines import Autoencoder, Dense
from fcdd.nn.fcn import parameters, vgg11_whole
from fcdd.nn.networks import build, build_autoencoder, build_dense, load_weights

NAMES = {28: "fmnist", 32: "cifar", 224: "vgg11"}


@pytest.mark.parametrize(("size", "outputs", "count"), [(28, 48, 714_416), (32, 64, 1_709_504)])
def test_a_dense_net_is_the_papers_trunk_and_one_layer_more(size: int, outputs: int, count: int) -> None:
    network, paper = build_dense(NAMES[size], size).eval(), build(NAMES[size])
    assert network(torch.rand(2, network.channels, size, size)).shape == (2, outputs)
    assert parameters(network) == count < 2 * parameters(paper)
    assert parameters(network.trunk) == parameters(paper.features)


def test_the_dense_net_of_large_images_is_vgg11_with_its_dense_layers() -> None:
    with torch.device("meta"):
        network = build_dense("vgg11", 224)
        assert network(torch.rand(2, 3, 224, 224)).shape == (2, 4096)
    # torchvision's vgg11_bn has 132,868,840 with its last layer of 1,000 classes, which HSC does not have.
    assert parameters(network) == 132_868_840 - (4096 * 1000 + 1000)


@pytest.mark.parametrize(("size", "count"), [(28, 408_497), (32, 1_270_467), (224, 4_009_635)])
def test_an_autoencoder_returns_its_inputs_shape_through_a_narrow_code(size: int, count: int) -> None:
    network = build_autoencoder(size).eval()
    images = torch.rand(2, network.channels, size, size)
    assert network(images).shape == images.shape
    assert network.encoder(images)[0].numel() < images[0].numel() / 10
    assert parameters(network) == count
    assert 0.85 < count / parameters(build(NAMES[size])) < 1.15


def test_each_output_depends_on_opposite_corners() -> None:
    network = build_dense("fmnist", 28).eval()
    images = torch.rand(1, 1, 28, 28, requires_grad=True)
    (slope,) = torch.autograd.grad(network(images)[0, 0], images)
    assert slope[0, 0, :3, :3].abs().max() > 0
    assert slope[0, 0, -3:, -3:].abs().max() > 0


def test_without_bias_nothing_is_added_anywhere() -> None:
    network = build_dense("cifar", 32, bias=False)
    assert not [name for name, _ in network.named_parameters() if "bias" in name]
    network.train()
    network(torch.rand(8, 3, 32, 32))
    network.eval()
    # Without a norm's running mean the network is odd up to its leaky rectifiers: nothing in, nothing out.
    for layer in network.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            assert layer.running_mean is not None
            layer.running_mean.zero_()
    assert torch.equal(network(torch.zeros(1, 3, 32, 32)), torch.zeros(1, 64))


def test_pretrained_features_load_into_the_trunk_and_freeze(tmp_path: Path) -> None:
    source, network = vgg11_whole(), build_dense("vgg11", 224)
    save_file({k: v.clone() for k, v in source.state_dict().items()}, tmp_path / "w.safetensors")
    load_weights(network.trunk, "vgg11", tmp_path / "w.safetensors")
    assert torch.equal(network.trunk.features[0].weight, source.features[0].weight)
    network.freeze(3)
    network.train()
    assert not network.trunk.features[0].weight.requires_grad
    assert not network.trunk.features[1].training
    assert network.trunk.features[-3].training
    assert parameters(network, trainable=True) == parameters(network) - 962_304


@pytest.mark.parametrize("make", [lambda: Dense(build("fmnist"), 64), lambda: Autoencoder(3, 64)])
def test_other_sizes_are_refused(make: object) -> None:
    with pytest.raises(ValueError, match="size 64: the baselines' networks take 28, 32, 224"):
        make()  # type: ignore[operator]
