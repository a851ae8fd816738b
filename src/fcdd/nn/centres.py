"""What good parts may look like, by example: how far a feature at its place is from the nearest of many nominal ones.

Where planes describe how a surface varies, examples describe which things belong on a part, and where. They are chosen
to cover all that good parts show (greedy k-centre), rare appearances as well as common ones. Each tap of the trunk
counts alike; within a tap features are compared as they are, because whitening would make noise count too. A place
counts little against a feature: where good parts are aligned it tells a thing that sits elsewhere or is missing, and
where they are not, examples from many places are near enough.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Generator, Tensor, nn

from fcdd.nn.planes import nearest, spread

POOL = 30_000  # vectors among which the centres are chosen
REST = POOL // 4  # further ones, which give the scale
PLACE = 6.5  # what crossing the image counts, in root mean squared distances between features of good parts
FEW = 1_000  # examples from which that distance is measured, at most an eighth of all


class Centres(nn.Module):
    """Squared distance to the nearest centre, in its mean over good parts: features (N, C, h, w) → (N, 1, h, w) ≥ 0."""

    centres: Tensor  # (K, C + 2): features in `unit`, then the place
    unit: Tensor  # (C,) what a feature is divided by
    scale: Tensor  # mean of the squared distance over good parts
    owners: Tensor  # (K,) which image each centre was taken from; known only while learning

    def __init__(self, count: int, channels: int) -> None:
        super().__init__()
        self.register_buffer("centres", torch.zeros(count, channels + 2))
        self.register_buffer("unit", torch.ones(channels))
        self.register_buffer("scale", torch.ones(()))
        self.register_buffer("owners", torch.full((count,), -1), persistent=False)

    def forward(self, features: Tensor, without: Tensor | None = None) -> Tensor:
        """`without` (N,) are images, counted as in `fit`, whose own centres do not count for them."""
        n, _, height, width = features.shape
        where = places(height, width).to(features).expand(n, -1, -1)
        x = torch.cat([features.flatten(2).transpose(1, 2) / self.unit, where], 2)
        squared: Tensor = (self._least(x, without) + x.square().sum(2)).clamp_min(0) / self.scale
        return squared.view(n, 1, height, width)

    def _least(self, x: Tensor, without: Tensor | None) -> Tensor:
        """x (N, k, C + 2) → ‖c‖² − 2 c · x (N, k) of the nearest centre c."""
        norms = self.centres.square().sum(1)
        if torch.compiler.is_exporting():  # a graph for any number of images cannot take them one after the other
            return torch.addmm(norms, x.flatten(0, 1), self.centres.T, alpha=-2).amin(1).view(x.shape[0], -1)
        own = [norms] * len(x) if without is None else norms.masked_fill(self.owners == without[:, None], torch.inf)
        # One by one, products stay in the processor's cache.
        return torch.stack(
            [torch.addmm(norm, one, self.centres.T, alpha=-2).amin(1) for norm, one in zip(own, x, strict=True)]
        )

    @torch.no_grad()
    def fit(self, x: Tensor, where: Tensor, owners: Tensor, widths: Sequence[int], generator: Generator) -> None:
        """Choose centres among nominal features x (M, C) at the places `where` (M, 2); others give the scale.

        `owners` (M,) says which image each feature is of, and `widths` are the numbers of channels of the trunk's taps.
        """
        order = torch.randperm(len(x), generator=generator)[: POOL + REST]
        x, where = x[order], where[order]
        for tap, unit in zip(x.split(list(widths), 1), self.unit.split(list(widths)), strict=True):
            unit.fill_(tap.var(0).sum().clamp_min(1e-12).sqrt())
        alike = x / self.unit
        apart = nearest(alike, alike[spread(alike[:POOL], max(1, min(FEW, len(x) // 8)), generator)])[0].mean()
        self.unit.mul_(apart.clamp_min(1e-12).sqrt())
        x = torch.cat([x / self.unit, where], 1)
        pool, rest = x[:POOL], x[POOL:]
        count = len(self.centres)
        chosen = spread(pool, min(count, len(pool)), generator)
        chosen = chosen[torch.arange(count) % len(chosen)]
        self.centres.copy_(pool[chosen])
        self.owners.copy_(owners[order][chosen])
        self.scale.copy_(nearest(rest if len(rest) else pool, self.centres)[0].mean().clamp_min(1e-12))


def places(height: int, width: int) -> Tensor:
    """Rows and columns (h·w, 2) of a grid of cells, `PLACE` apart at the ends of a square one."""
    unit = PLACE / (height * width) ** 0.5
    rows, columns = torch.arange(height) * unit, torch.arange(width) * unit
    return torch.cartesian_prod(rows, columns).view(-1, 2)
