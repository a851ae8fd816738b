"""The computed receptive field against the gradient's true support."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fcdd.nn.fcn import FCN
from fcdd.nn.fields import Field, receptive_field
from fcdd.nn.networks import build

FIELDS = [
    ("fmnist", {}, 16, 4, 1.5),
    ("cifar", {}, 22, 4, 1.5),
    ("vgg11", {}, 62, 8, 3.5),
    ("vgg16", {}, 92, 8, 3.5),
    *[("cifar-field", {"kernel": k}, k + 15, 4, 1.5) for k in range(3, 18, 2)],
    *[("mvtec-field", {"kernel": 3 + 2 * i}, f, 8, 0.0) for i, f in enumerate((53, 91, 129, 167, 205, 243))],
]


@pytest.mark.parametrize(("name", "options", "size", "stride", "start"), FIELDS)
def test_the_papers_fields(name: str, options: dict[str, int], size: int, stride: int, start: float) -> None:
    assert build(name, **options).field == Field(size, stride, start)


def linearised(network: FCN) -> nn.Sequential:
    """The same geometry with positive weights and averages for maxima, so that no path's gradient can vanish.

    Two channels a layer are enough: the support of the gradient depends on kernels, strides and paddings alone.
    """
    layers: list[nn.Module] = []
    for layer in [*network.features, network.head]:
        if isinstance(layer, nn.Conv2d):
            conv = nn.Conv2d(1, 1, layer.kernel_size, layer.stride, layer.padding, bias=False, dtype=torch.float64)  # type: ignore[arg-type]
            nn.init.constant_(conv.weight, 1.0)
            layers.append(conv)
        elif isinstance(layer, nn.MaxPool2d):
            layers.append(nn.AvgPool2d(layer.kernel_size, layer.stride, layer.padding))
    return nn.Sequential(*layers)


@pytest.mark.parametrize(("name", "options"), [(n, o) for n, o, *_ in FIELDS])
def test_one_cells_gradient_covers_exactly_its_field(name: str, options: dict[str, int]) -> None:
    network = build(name, **options)
    field = network.field
    side = field.stride * (2 * (field.size // field.stride) + 4)
    image = torch.zeros(1, 1, side, side, dtype=torch.float64, requires_grad=True)
    out = linearised(network)(image)
    cell = out.shape[-1] // 2
    out[0, 0, cell, cell].backward()  # type: ignore[no-untyped-call]
    assert image.grad is not None
    for axis in (2, 3):
        seen = image.grad.abs().sum(dim=(0, 1, 5 - axis)).nonzero().flatten()
        centre = field.start + field.stride * cell
        assert seen.min().item() == centre - (field.size - 1) / 2
        assert seen.max().item() == centre + (field.size - 1) / 2
        assert len(seen) == field.size


def test_a_real_networks_cell_ignores_pixels_outside_its_field() -> None:
    torch.manual_seed(0)
    network = build("cifar").eval()
    image = torch.rand(1, 3, 64, 64, requires_grad=True)
    network(image)[0, 0, 8, 8].backward()
    assert image.grad is not None
    low, high = int(1.5 + 32 - 10.5), int(1.5 + 32 + 10.5)
    inside = image.grad[..., low : high + 1, low : high + 1].abs().sum()
    assert inside > 0
    assert torch.isclose(inside, image.grad.abs().sum())


def test_unknown_and_lopsided_layers_are_refused() -> None:
    with pytest.raises(TypeError, match="Linear"):
        receptive_field([nn.Linear(2, 2)])
    with pytest.raises(TypeError, match="not square"):
        receptive_field([nn.Conv2d(1, 1, (3, 5))])
    with pytest.raises(TypeError, match="padding"):
        receptive_field([nn.Conv2d(1, 1, 3, padding="same")])


def test_dilation_widens_the_field() -> None:
    assert receptive_field([nn.Conv2d(1, 1, 3, dilation=2, padding=2)]) == Field(5, 1, 0.0)
