"""The inspector's network: a frozen trunk, whitened features, and their distance to what good parts show."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from fcdd.nn import written
from fcdd.nn.architecture import Architecture
from fcdd.nn.centres import Centres
from fcdd.nn.compiled import INPUT, Graph, Sessions, runs_frozen
from fcdd.nn.fields import Field
from fcdd.nn.grids import enlarge_matrix, grid_matrix, neighbour_mean, shrink_matrix
from fcdd.nn.head import Head
from fcdd.nn.network import NETWORKS, CellNetwork
from fcdd.nn.objectives import pseudo_huber
from fcdd.nn.planes import Planes, Whiten
from fcdd.nn.trunks import TRUNKS

COARSE = 0.54  # scale of the coarse image: 384 pixels become 208
SIGMA = 8.0  # of the upsampling, in pixels: one cell
GREY = 2.0  # channels that never differ by more grey levels than this are one grey channel, stored three times


@NETWORKS.register("trunk")
class Description(CellNetwork):
    """Images (N, 3, H, W), float in 0…255 → cells A (N, 1, h, w) ≥ 0 on a grid of stride 8.

    A = Σ wₖ · Aₖ over the parts that the architecture has, each the pseudo-Huber norm of the paper, √(d² + 1) − 1:

    planes   d is the distance of a cell's whitened features to the nearest nominal plane, in its mean over good parts
    centres  the same for the nearest of many nominal examples, each with its place, on the image at about half the
             size, where a cell sees how a part is put together
    head     d = ‖φ‖ of a head φ that is trained by the paper's objectives
    """

    mix: Tensor  # (3, 3) from the image's channels to the trunk's: the identity, or the mean where good parts are grey
    level: Tensor  # (3,) mean of good images, the lighting that every image is brought to
    scale: Tensor  # mean over good parts of the squared distance to the planes
    weights: Tensor  # (3,) of the cells of PARTS

    PARTS = ("planes", "centres", "head")

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.architecture = architecture
        self.trunk = TRUNKS[architecture.trunk]()
        channels = sum(self.trunk.widths)
        self.whiten = Whiten(channels)
        self.planes = Planes(architecture.planes, architecture.directions, channels) if architecture.planes else None
        self.centres = Centres(architecture.centres, channels) if architecture.centres else None
        self.head = Head(channels, architecture.width, architecture.dimensions) if architecture.dimensions else None
        self.register_buffer("mix", torch.eye(3))
        self.register_buffer("level", torch.full((3,), 127.0))
        self.register_buffer("scale", torch.ones(()))
        self.register_buffer("weights", torch.ones(len(self.PARTS)))
        self.sigma = SIGMA
        self._sessions = Sessions()
        self.field: Field = min((f for f in self.trunk.fields if f.stride == 8), key=lambda f: f.size)

    @property
    def parts(self) -> list[str]:
        """Those of PARTS that this description has, in their order."""
        return [name for name in self.PARTS if getattr(self, name) is not None]

    def relight(self, images: Tensor) -> Tensor:
        """Each channel brought to the good images' mean by a gain of at most a quarter: an ageing lamp is no defect."""
        images = F.conv2d(images, self.mix[:, :, None, None])
        # Rows first, as a product: OpenVINO adds up means of a whole image in one long sum, which loses digits.
        mean = (images @ images.new_full((images.shape[3], 1), 1 / images.shape[3])).mean(2, keepdim=True)
        gain = self.level.view(1, 3, 1, 1) / mean.clamp_min(1.0)
        return images * gain.clamp(0.8, 1.25)

    def features(self, images: Tensor, coarse: bool = False) -> Tensor:
        """(N, 3, H, W) → joined taps (N, C, h, w), each cell the mean of its 3×3 neighbourhood.

        With `coarse`, those of the image at about half the size, on the fewer cells that it has.
        """
        images = self.relight(images)
        if coarse:
            rows, columns = (
                torch.from_numpy(shrink_matrix(side, coarse_side(side))).to(images) for side in images.shape[2:]
            )
            images = rows @ images @ columns.T
        if self.compiles and runs_frozen(images):
            return self._sessions.run("features", self._written_features, images, self._tensors())[0]
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

    def maps(self, images: Tensor, without: Tensor | None = None) -> dict[str, Tensor]:
        """The parts' cells Aₖ (N, 1, h, w), not weighted, by name; for `without` see `Centres`."""
        if without is None and self.compiles and runs_frozen(images):
            found = self._sessions.run("maps", self._written_maps, images, self._tensors())
            return dict(zip(self.parts, found, strict=True))
        parts: dict[str, Tensor] = {}
        if self.planes is not None or self.head is not None:
            parts = self.describe(self.features(images))
        if self.centres is not None:
            cells = _norm(self.centres(self.features(images, coarse=True), without))
            rows, columns = (
                torch.from_numpy(enlarge_matrix(self.field, coarse_side(side), side)).to(cells)
                for side in images.shape[2:]
            )
            parts["centres"] = rows @ cells @ columns.T
        return parts

    @property
    def compiles(self) -> bool:
        """Whether the cells can be had from a graph of ONNX, which is faster, and can be exported."""
        # Tensors that were made in inference mode do not tell when they change.
        return not self.training and hasattr(self.trunk, "written") and not self.level.is_inference()

    def _tensors(self) -> list[Tensor]:
        """All that the parts' cells depend on: everything but their weights."""
        return [tensor for name, tensor in self.state_dict(keep_vars=True).items() if name != "weights"]

    def _written_features(self, graph: Graph, height: int, width: int) -> list[str]:
        return [written.features(graph, self, INPUT, height, width)]

    def _written_maps(self, graph: Graph, height: int, width: int) -> list[str]:
        found = written.maps(graph, self, INPUT, height, width)
        return [found[name] for name in self.parts]

    def describe(self, features: Tensor) -> dict[str, Tensor]:
        """Features (N, C, h, w) → the cells Aₖ (N, 1, h, w) of planes and head."""
        n, _, height, width = features.shape
        white = self.whiten(_cells(features))
        found: dict[str, Tensor] = {}
        if self.planes is not None:
            found["planes"] = _norm(self.planes(white) / self.scale).view(n, 1, height, width)
        if self.head is not None:
            found["head"] = pseudo_huber(self.head(white)).view(n, 1, height, width)
        return found

    def forward(self, images: Tensor) -> Tensor:
        found = self.maps(images)
        weighted = [
            weight * found[name] for name, weight in zip(self.PARTS, self.weights, strict=True) if name in found
        ]
        return weighted[0] if len(weighted) == 1 else torch.stack(weighted).sum(0)

    def look(self, images: Tensor) -> tuple[Tensor, Tensor]:
        features = self.features(images)
        n, channels = features.shape[:2]
        return self(images), self.whiten(_cells(features)).view(n, -1, channels)

    @property
    def reach(self) -> int:
        widest = max(
            int(field.size + 2 * field.stride) for field in self.trunk.fields
        )  # with the mean over 3 × 3 cells
        return widest if self.centres is None else int(widest / COARSE)

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Fill in the tensors of a model file; earlier files know the weights of planes and head, or none."""
        weights = tensors.get("weights", self.weights)
        if len(weights) == 2:  # of planes and head
            weights = torch.stack([weights[0], self.weights[1], weights[1]])
        super().restore({**tensors, "weights": weights})

    @torch.no_grad()
    def fit_light(self, images: Tensor) -> None:
        """Learn colour and level of the light from good images (N, 3, H, W) in 0…255."""
        if (images.amax(1) - images.amin(1)).max() <= GREY:
            self.mix.fill_(1 / 3)
        self.level.copy_(torch.einsum("oc,nchw->nohw", self.mix, images).mean((0, 2, 3)))

    @torch.no_grad()
    def fit(self, vectors: Tensor, generator: Generator) -> None:
        """Learn whitening and, where there are some, planes and their scale from nominal features (M, C)."""
        self.whiten.fit(vectors)
        if self.planes is None:
            return
        white = self.whiten(vectors)
        self.planes.fit(white, generator)
        self.scale.copy_(torch.cat([self.planes(part) for part in white[::8].split(4096)]).mean().clamp_min(1e-12))


def coarse_side(side: int) -> int:
    """The side in pixels of the coarse image: whole cells of the deepest tap, at least four."""
    return 16 * max(4, round(side * COARSE / 16))


def _cells(features: Tensor) -> Tensor:
    """(N, C, h, w) → (N·h·w, C)."""
    return features.permute(0, 2, 3, 1).reshape(-1, features.shape[1])


def _norm(squared: Tensor) -> Tensor:
    """√(d² + 1) − 1 of d² ≥ 0, written so that small values keep their digits."""
    return squared / ((squared + 1).sqrt() + 1)
