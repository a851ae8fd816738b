"""The paper's networks with their preprocessing inside, so that any image can be given to them as it is."""

from __future__ import annotations

import torch
from torch import Tensor

from fcdd.nn import networks
from fcdd.nn.architecture import FcnArchitecture
from fcdd.nn.fcn import FCN
from fcdd.nn.network import NETWORKS, CellNetwork
from fcdd.nn.objectives import pseudo_huber
from fcdd.nn.preprocess import FLAT, Preprocess

LUMA = (0.299, 0.587, 0.114)  # ITU-R 601
SIGMA_SMALL, SIGMA_LARGE = 1.2, 12.0  # of the upsampling, as the paper has it for 28 and 32 px and for MVTec-AD


@NETWORKS.register("fcn")
class Prepared(CellNetwork):
    """Images (N, 3, H, W), float in 0…255 → A = √(‖φ‖² + 1) − 1 (N, 1, h, w) of a paper's network φ.

    Gray networks are given the luma. The preprocessing is `Preprocess` with its constants as tensors: per-image
    contrast normalisation where the architecture says lcn, then (z − offset) / scale for each channel.
    """

    architecture: FcnArchitecture
    offset: Tensor  # (C,)
    scale: Tensor  # (C,)
    gray: Tensor  # (1, 3, 1, 1) weights of the luma; a tensor, so that it is exported

    def __init__(self, architecture: FcnArchitecture) -> None:
        super().__init__()
        self.architecture = architecture
        options = {"kernel": architecture.kernel} if architecture.kernel else {}
        self.network: FCN = networks.build(architecture.network, dimensions=architecture.dimensions, **options)
        self.field = self.network.field
        self.sigma = SIGMA_SMALL if self.network.size < 64 else SIGMA_LARGE
        self.register_buffer("offset", torch.zeros(self.network.channels))
        self.register_buffer("scale", torch.ones(self.network.channels))
        self.register_buffer("gray", torch.tensor(LUMA).view(1, 3, 1, 1), persistent=False)
        self.register_buffer("level", torch.full((3,), 127.0))

    def settle(self, preprocess: Preprocess, level: Tensor) -> None:
        """Take over the constants of the preprocessing; `level` (3,) in 0…255 is the mean colour of good images."""
        if preprocess.kind != "none":
            self.offset.copy_(torch.tensor(preprocess.offset))
            self.scale.copy_(torch.tensor(preprocess.scale))
        self.level.copy_(level)
        self.eval().requires_grad_(False)

    def prepare(self, images: Tensor) -> Tensor:
        """Images (N, 3, H, W) in 0…255 → the network's input (N, C, H, W)."""
        x = images / 255
        if self.network.channels == 1:
            x = (x * self.gray).sum(1, keepdim=True)
        if self.architecture.preprocess == "lcn":
            centred = x - x.mean((1, 2, 3), keepdim=True)
            deviation = centred.abs().mean((1, 2, 3), keepdim=True)
            x = centred / torch.where(deviation > FLAT, deviation, torch.ones_like(deviation))
        return (x - self.offset.view(1, -1, 1, 1)) / self.scale.view(1, -1, 1, 1)

    def forward(self, images: Tensor) -> Tensor:
        return pseudo_huber(self.network.head(self._seen(images)))

    def look(self, images: Tensor) -> tuple[Tensor, Tensor]:
        seen = self._seen(images)
        return pseudo_huber(self.network.head(seen)), seen.flatten(2).transpose(1, 2)

    def _seen(self, images: Tensor) -> Tensor:
        return self.network.embed(self.prepare(images).contiguous(memory_format=torch.channels_last))
