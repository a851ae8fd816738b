"""The inspector's network: a frozen trunk, whitened features, and their distance to what good parts show."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from fcdd.nn.architecture import Architecture
from fcdd.nn.fields import Field
from fcdd.nn.network import NETWORKS, CellNetwork
from fcdd.nn.objectives import pseudo_huber
from fcdd.nn.planes import Planes, Whiten
from fcdd.nn.trunks import TRUNKS

SIGMA = 8.0  # of the upsampling, in pixels: one cell
GREY = 2.0  # channels that never differ by more grey levels than this are one grey channel, stored three times


class Head(nn.Module):
    """φ of the hypersphere that labelled defects train: whitened features (M, D) → (M, d), cell by cell."""

    WIDTH = 128

    def __init__(self, channels: int, dimensions: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(channels, self.WIDTH),
            nn.BatchNorm1d(self.WIDTH),
            nn.LeakyReLU(0.1),
            nn.Linear(self.WIDTH, self.WIDTH),
            nn.BatchNorm1d(self.WIDTH),
            nn.LeakyReLU(0.1),
            nn.Linear(self.WIDTH, dimensions),
        )

    def reset(self, generator: Generator) -> None:
        """Start anew with weights from `generator`, uniform within 1/√inputs as torch's own."""
        for layer in self.layers:
            if isinstance(layer, nn.BatchNorm1d):
                layer.reset_parameters()
            elif isinstance(layer, nn.Linear):
                bound = layer.in_features**-0.5
                for parameter in (layer.weight, layer.bias):
                    nn.init.uniform_(parameter, -bound, bound, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        phi: Tensor = self.layers(x)
        return phi


@NETWORKS.register("trunk")
class Description(CellNetwork):
    """Images (N, 3, H, W), float in 0…255 → cells A (N, 1, h, w) ≥ 0 on a grid of stride 8.

    A = w₀ · A_planes + w₁ · A_head, either of which the architecture may leave out. A_planes = √(d²/s² + 1) − 1, with d
    the distance of a cell's features to the nearest nominal plane and s² the mean of d² over good parts: the
    pseudo-Huber norm of the paper with many centres for one. A_head = √(‖φ‖² + 1) − 1 of a head φ that is trained by
    the paper's objectives.
    """

    mix: Tensor  # (3, 3) from the image's channels to the trunk's: the identity, or the mean where good parts are grey
    level: Tensor  # (3,) mean of good images, the lighting that every image is brought to
    scale: Tensor  # s²
    weights: Tensor  # (2,) of the planes' and of the head's cells

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.architecture = architecture
        self.trunk = TRUNKS[architecture.trunk]()
        channels = self.trunk.channels
        self.whiten = Whiten(channels)
        self.planes = Planes(architecture.planes, architecture.directions, channels) if architecture.planes else None
        self.head = Head(channels, architecture.dimensions) if architecture.dimensions else None
        self.register_buffer("mix", torch.eye(3))
        self.register_buffer("level", torch.full((3,), 127.0))
        self.register_buffer("scale", torch.ones(()))
        self.register_buffer("weights", torch.ones(2))
        self.sigma = SIGMA
        self.field: Field = min((f for f in self.trunk.fields if f.stride == 8), key=lambda f: f.size)

    def relight(self, images: Tensor) -> Tensor:
        """Each channel brought to the good images' mean by a gain of at most a quarter: an ageing lamp is no defect."""
        images = F.conv2d(images, self.mix[:, :, None, None])
        # Rows first, as a product: OpenVINO adds up means of a whole image in one long sum, which loses digits.
        mean = (images @ images.new_full((images.shape[3], 1), 1 / images.shape[3])).mean(2, keepdim=True)
        gain = self.level.view(1, 3, 1, 1) / mean.clamp_min(1.0)
        return images * gain.clamp(0.8, 1.25)

    def features(self, images: Tensor) -> Tensor:
        """(N, 3, H, W) → joined taps (N, C, h, w), each cell the mean of its 3×3 neighbourhood."""
        images = self.relight(images)
        taps = self.trunk(images.contiguous(memory_format=torch.channels_last))
        cells = images.shape[2] // self.field.stride, images.shape[3] // self.field.stride
        return torch.cat(
            [self._to_grid(tap, field, cells) for tap, field in zip(taps, self.trunk.fields, strict=True)], 1
        )

    def _to_grid(self, tap: Tensor, field: Field, cells: Sequence[int]) -> Tensor:
        """A tap on the common grid, averaged over 3×3 cells there: both are linear along each axis, so one matrix."""
        matrices = (
            neighbour_mean(cells[i]) @ grid_matrix(field, tap.shape[2 + i], self.field, cells[i]) for i in (0, 1)
        )
        rows, columns = (torch.from_numpy(matrix).to(tap) for matrix in matrices)
        return rows @ tap.contiguous() @ columns.T

    def describe(self, features: Tensor) -> Tensor:
        """Features (N, C, h, w) → cells A (N, 1, h, w)."""
        n, channels, height, width = features.shape
        white = self.whiten(features.permute(0, 2, 3, 1).reshape(-1, channels))
        parts = []
        if self.planes is not None:
            squared: Tensor = self.planes(white) / self.scale
            parts.append(self.weights[0] * squared / ((squared + 1).sqrt() + 1))
        if self.head is not None:
            parts.append(self.weights[1] * pseudo_huber(self.head(white)).flatten())
        A = parts[0] if len(parts) == 1 else parts[0] + parts[1]
        return A.view(n, 1, height, width)

    def forward(self, images: Tensor) -> Tensor:
        return self.describe(self.features(images))

    def look(self, images: Tensor) -> tuple[Tensor, Tensor]:
        features = self.features(images)
        n, channels = features.shape[:2]
        white = self.whiten(features.permute(0, 2, 3, 1).reshape(-1, channels))
        return self.describe(features), white.view(n, -1, channels)

    @property
    def reach(self) -> int:
        return max(int(field.size + 2 * field.stride) for field in self.trunk.fields)  # with the mean over 3 × 3 cells

    def since_schema_1(self) -> set[str]:
        return {"weights"}

    @torch.no_grad()
    def fit_light(self, images: Tensor) -> None:
        """Learn colour and level of the light from good images (N, 3, H, W) in 0…255."""
        if (images.amax(1) - images.amin(1)).max() <= GREY:
            self.mix.fill_(1 / 3)
        self.level.copy_(torch.einsum("oc,nchw->nohw", self.mix, images).mean((0, 2, 3)))

    @torch.no_grad()
    def fit(self, vectors: Tensor, generator: Generator) -> None:
        """Learn whitening and, where there are planes, these and their scale from nominal features (M, C)."""
        self.whiten.fit(vectors)
        if self.planes is None:
            return
        white = self.whiten(vectors)
        self.planes.fit(white, generator)
        self.scale.copy_(torch.cat([self.planes(part) for part in white[::8].split(4096)]).mean().clamp_min(1e-12))


@lru_cache(maxsize=64)
def grid_matrix(source: Field, source_cells: int, target: Field, cells: int) -> NDArray[np.float32]:
    """(cells, source_cells): weights that bring one grid of cells to another by the centres of their fields.

    A triangle as wide as the coarser stride: linear interpolation towards a finer grid, a smooth mean towards a
    coarser one. Rows add up to one.
    """
    wide = max(source.stride, target.stride)
    known = np.array(source.centres(source_cells))
    # Beyond the outermost source cells their value goes on, as the reflecting border of the trunk would have it.
    wanted = np.clip(target.centres(cells), known[0], known[-1])
    weight = np.maximum(1 - np.abs(wanted[:, None] - known) / wide, 0)
    return np.asarray(weight / weight.sum(1, keepdims=True), np.float32)


@lru_cache(maxsize=16)
def neighbour_mean(cells: int) -> NDArray[np.float32]:
    """(cells, cells): the mean of each cell and its neighbours along one axis, fewer of them at the border."""
    near = np.abs(np.subtract.outer(np.arange(cells), np.arange(cells))) <= 1
    return np.asarray(near / near.sum(1, keepdims=True), np.float32)
