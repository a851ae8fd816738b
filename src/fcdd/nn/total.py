"""A sum of networks is a network: its cells still add up to the score, and each part can be shown on its own."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fcdd.nn.architecture import SumArchitecture
from fcdd.nn.grids import grid_matrix
from fcdd.nn.network import NETWORKS, CellNetwork, build


@NETWORKS.register("sum")
class Sum(CellNetwork):
    """A = Σ wₖ · Aₖ over networks of the same images, on the grid of the first; w ≥ 0.

    Cells of another grid are interpolated linearly between the centres of their receptive fields.
    """

    weights: Tensor  # (K,) ≥ 0

    def __init__(self, architecture: SumArchitecture) -> None:
        super().__init__()
        self.architecture = architecture
        members = [build(part) for part in architecture.parts]
        self.parts = nn.ModuleList(members)
        self.field, self.sigma = members[0].field, members[0].sigma
        self.register_buffer("weights", torch.ones(len(members)))
        self.register_buffer("level", members[0].level.clone())

    def forward(self, images: Tensor) -> Tensor:
        maps = [self._moved(part(images), index, images) for index, part in enumerate(self.parts)]
        return torch.stack([weight * A for weight, A in zip(self.weights, maps, strict=True)]).sum(0)

    def look(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """The cells of the sum, and what all parts saw, joined."""
        seen = []
        for index, part in enumerate(self.parts):
            A, vectors = part.look(images)  # type: ignore[operator]
            grid = vectors.transpose(1, 2).unflatten(2, (A.shape[2], A.shape[3]))
            seen.append(self._moved(grid, index, images).flatten(2).transpose(1, 2))
        return self(images), torch.cat(seen, 2)

    @property
    def reach(self) -> int:
        return max(int(part.reach) for part in self.parts)  # type: ignore[arg-type]

    def _moved(self, cells: Tensor, index: int, images: Tensor) -> Tensor:
        """A part's map (N, C, h′, w′) on the grid of the first part (N, C, h, w)."""
        field = self.parts[index].field
        assert not isinstance(field, Tensor | nn.Module)
        if field == self.field:
            return cells
        sides = [images.shape[2 + axis] // self.field.stride for axis in (0, 1)]
        rows, columns = (
            torch.from_numpy(grid_matrix(field, cells.shape[2 + axis], self.field, sides[axis])).to(cells)
            for axis in (0, 1)
        )
        return rows @ cells @ columns.T
