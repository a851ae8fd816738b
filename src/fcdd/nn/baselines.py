"""The baselines' networks, which need not be fully convolutional: dense heads on the paper's trunks, autoencoders."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fcdd.nn.fcn import FCN, LEAK, NORM_EPS

OUTPUTS = {28: 48, 32: 64, 224: 128}  # of a dense head, and of an autoencoder's code, by the side of the input
WIDTHS = {28: (32, 64), 32: (64, 128, 256), 224: (16, 32, 64, 128, 256)}  # of an autoencoder; a pooling after each
HIDDEN = 4096  # outputs of VGG11-BN's dense layers
CELLS = 7  # side, at most about this, of what a dense layer looks at; larger trunks are pooled to it


class Dense(nn.Module):
    """The trunk of one of the paper's networks with a dense layer on top: images (N, C, S, S) → φ (N, d).

    714,416 and 1,709,504 parameters on fmnist and cifar, whose FCDD nets it differs from by its head alone. With
    `hidden` the head has a dense layer more, as the authors have it on all of VGG11-BN: 128,777,088 parameters, d 4096,
    but without their dropout, whose random numbers would make a resumed training another one. `centre` (d,) is used by
    Deep SVDD and Deep SAD; it is a buffer, so that it travels with the weights.
    """

    centre: Tensor

    def __init__(self, trunk: FCN, size: int, outputs: int = 0, bias: bool = True, hidden: int = 0) -> None:
        """Takes `trunk` over, without its 1×1 convolution. `outputs` 0 stands for the usual number at this size."""
        super().__init__()
        outputs = outputs or hidden or OUTPUTS[known_size(size)]
        width = trunk.head.in_channels
        trunk.head = nn.Identity()  # type: ignore[assignment]
        cells = size // trunk.field.stride
        pooling = max(1, cells // CELLS)
        self.trunk = trunk
        self.head = nn.Sequential(
            nn.MaxPool2d(pooling),
            nn.LeakyReLU(LEAK),
            nn.Flatten(),
            *((nn.Linear(width * (cells // pooling) ** 2, hidden), nn.ReLU()) if hidden else ()),
            nn.Linear(hidden or width * (cells // pooling) ** 2, outputs),
        )
        self.channels, self.size = trunk.channels, size
        self.register_buffer("centre", torch.zeros(outputs))
        if not bias:
            remove_bias(self)

    def forward(self, images: Tensor) -> Tensor:
        phi: Tensor = self.head(self.trunk(images))
        return phi

    def freeze(self, stages: int) -> None:
        self.trunk.freeze(stages)


class Autoencoder(nn.Module):
    """Images (N, C, S, S) → code (N, d) → reconstruction (N, C, S, S), of any value range.

    408,497, 1,270,467 and 4,009,635 parameters for 28, 32 and 224 px: as many as the FCDD nets have, nearly.
    """

    def __init__(self, channels: int, size: int) -> None:
        super().__init__()
        widths, code = WIDTHS[known_size(size)], OUTPUTS[size]
        kernel = 5 if size == 28 else 3
        last = size // 2 ** len(widths)
        steps = list(zip((channels, *widths), widths, strict=False))
        down = [layer for a, b in steps for layer in (*_block(a, b, kernel), nn.MaxPool2d(2))]
        up = [layer for a, b in reversed(steps[1:]) for layer in (nn.Upsample(scale_factor=2), *_block(b, a, kernel))]
        out = nn.Conv2d(widths[0], channels, kernel, padding=kernel // 2)
        self.encoder = nn.Sequential(*down, nn.Flatten(), nn.Linear(widths[-1] * last**2, code))
        self.expand = nn.Sequential(nn.Linear(code, widths[-1] * last**2), nn.LeakyReLU(LEAK))
        self.decoder = nn.Sequential(nn.Unflatten(1, (widths[-1], last, last)), *up, nn.Upsample(scale_factor=2), out)
        self.channels, self.size = channels, size

    def forward(self, images: Tensor) -> Tensor:
        output: Tensor = self.decoder(self.expand(self.encoder(images)))
        return output


def remove_bias(network: nn.Module) -> None:
    """Take every additive term away, those of the norms with their scales too.

    With one, Deep SVDD's network could map all images to the centre by it and ignore them.
    """
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear | nn.BatchNorm2d):
            layer.register_parameter("bias", None)
        if isinstance(layer, nn.BatchNorm2d):
            layer.register_parameter("weight", None)


def known_size(size: int) -> int:
    """`size`, where there is a baseline network for it; else a ValueError."""
    if size not in OUTPUTS:
        raise ValueError(f"size {size}: the baselines' networks take {', '.join(map(str, OUTPUTS))}")
    return size


def _block(inputs: int, outputs: int, kernel: int) -> tuple[nn.Module, ...]:
    # No bias: the norm that follows takes a constant away again.
    return (
        nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False),
        nn.BatchNorm2d(outputs, eps=NORM_EPS),
        nn.LeakyReLU(LEAK),
    )
