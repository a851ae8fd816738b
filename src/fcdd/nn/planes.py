"""Many hyperspheres in one: the distance of a feature to the nearest of K nominal planes.

One centre cannot describe a part that has thread, head and background. k-means finds K nominal centres m_k; around
each, nominal features vary along a few directions only, so each centre gets r local principal directions u_kj, shrunk
by how much of their variance is noise. What is left of x − m_k after those is what no good part shows:

    d²(x) = min over k of w_k · (‖x − m_k‖² − Σ_j (u_kj · (x − m_k))²)

with w_k = (noise of plane k / mean noise)^−¼: where good parts scatter more, the same distance means less. All terms
are 1×1 convolutions: fully convolutional, constant in memory, exportable.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn

CHUNK = 4096  # vectors at a time when centres are sought
PART = 512  # vectors at a time when distances are asked for
PRIOR = 20.0  # vectors' worth of the pooled covariance that each plane's own is mixed with
SCATTER = 0.25  # how far a plane's own noise counts: 0 not at all, 1 in full
ROUNDS = 6  # of Lloyd's algorithm
SHRINK = 0.1  # share of the mean variance that whitening adds to each direction, so that rounding is not blown up
PROJECTION = 64  # dimensions in which the first centres are chosen


class Planes(nn.Module):
    """Squared distance to the nearest plane: x (M, D) → (M,) ≥ 0."""

    centres: Tensor  # (K, D)
    directions: Tensor  # (K·r, D), not of unit length: the length carries the shrinkage
    weights: Tensor  # (K,) w_k

    def __init__(self, count: int, directions: int, dimensions: int) -> None:
        super().__init__()
        self.register_buffer("centres", torch.zeros(count, dimensions))
        self.register_buffer("directions", torch.zeros(count * directions, dimensions))
        self.register_buffer("weights", torch.ones(count))

    def forward(self, x: Tensor) -> Tensor:
        if torch.compiler.is_exporting():  # a graph for any number of vectors has no number of parts
            return self._squared(x)
        # In parts, so that the products stay in the processor's cache.
        return torch.cat([self._squared(part) for part in x.split(PART)])

    def _squared(self, x: Tensor) -> Tensor:
        count = len(self.centres)
        offsets = (self.directions.view(count, -1, x.shape[1]) * self.centres[:, None]).sum(-1).flatten()
        squared = torch.addmm(self.centres.square().sum(1), x, self.centres.T, alpha=-2) + x.square().sum(
            1, keepdim=True
        )
        explained = torch.addmm(-offsets, x, self.directions.T).view(x.shape[0], count, -1).square().sum(-1)
        return (self.weights * (squared - explained)).amin(1).clamp_min(0)

    def fit(self, x: Tensor, generator: Generator) -> None:
        """Find centres and directions of nominal features x (M, D)."""
        count, dimensions = self.centres.shape
        rank = len(self.directions) // count
        centres = lloyd(x, x[spread(x, count, generator)])
        assignment = nearest(x, centres)[1]
        pooled = _products(x - centres[assignment]) / len(x)
        noises = torch.ones(count)
        fullest = int(torch.bincount(assignment).argmax())
        for k in range(count):
            members = x[assignment == k]
            if len(members) == 0:  # can only be where good features repeat; a copy of another plane changes nothing
                members = x[assignment == fullest]
            centres[k] = members.mean(0)
            own = members - centres[k]
            values, vectors = principal((_products(own) + PRIOR * pooled) / (len(members) + PRIOR))
            noises[k] = values[: dimensions - rank].mean().clamp_min(1e-12)
            kept = (1 - noises[k] / values[-rank:].clamp_min(1e-12)).clamp_min(0)
            self.directions[k * rank : (k + 1) * rank] = (vectors[:, -rank:] * kept.sqrt()).T
        self.centres.copy_(centres)
        self.weights.copy_((noises / noises.mean()) ** -SCATTER)


def nearest(x: Tensor, centres: Tensor) -> tuple[Tensor, Tensor]:
    """Squared distance (M,) to the nearest of `centres` (K, D), and its index (M,)."""
    norms = centres.square().sum(1)
    found = [torch.addmm(norms, part, centres.T, alpha=-2).min(1) for part in x.split(CHUNK)]
    distances = torch.cat([f.values for f in found]) + x.square().sum(1)
    return distances.clamp_min(0), torch.cat([f.indices for f in found])


def spread(x: Tensor, count: int, generator: Generator) -> Tensor:
    """Indices of `count` of x (M, D), each the farthest from those before it (greedy k-centre).

    Rare but good appearances each get a centre; drawn at random, the centres would crowd where most cells look alike.
    Distances are taken in a random projection, which keeps them well enough for choosing.
    """
    projection = torch.randn(x.shape[1], PROJECTION, generator=generator) / PROJECTION**0.5
    points = x @ projection if x.shape[1] > PROJECTION else x
    norms = points.square().sum(1)
    chosen = [int(torch.randint(len(x), (1,), generator=generator))]
    distances = torch.full((len(x),), torch.inf)
    for _ in range(count - 1):
        last = points[chosen[-1]]
        distances = torch.minimum(distances, norms - 2 * (points @ last) + last.square().sum())
        chosen.append(int(distances.argmax()))
    return torch.tensor(chosen)


def lloyd(x: Tensor, centres: Tensor) -> Tensor:
    """k-means from `centres`; one that loses all its vectors stays where it was."""
    for _ in range(ROUNDS):
        assignment = nearest(x, centres)[1]
        counts = torch.bincount(assignment, minlength=len(centres))
        sums = torch.zeros_like(centres).index_add_(0, assignment, x)
        centres = torch.where(counts[:, None] > 0, sums / counts.clamp_min(1)[:, None], centres)
    return centres


def _products(x: Tensor) -> Tensor:
    """Σ x xᵀ of x (M, D) in double precision, (D, D)."""
    total = torch.zeros(x.shape[1], x.shape[1], dtype=torch.float64)
    for part in x.split(CHUNK):
        total.addmm_(part.double().T, part.double())
    return total


def principal(symmetric: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues (D,), rising, and eigenvectors (D, D) as columns, in which the largest component is positive.

    Which of a direction's two signs a library gives depends on the processor, and what is drawn or trained afterwards
    depends on the sign.
    """
    values, vectors = torch.linalg.eigh(symmetric)
    largest = vectors.gather(0, vectors.abs().argmax(0, keepdim=True))
    return values, vectors * largest.sign()


class Whiten(nn.Module):
    """Standardise, then rotate and scale so that nominal features vary alike in every direction.

    x (M, C) → (x − μ) · W with W = diag(1/σ) · V · (Λ + ε·mean Λ)^−½, of the correlation matrix V Λ Vᵀ. Without it
    the few directions in which good parts vary most would drown all others.
    """

    mean: Tensor
    weight: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("weight", torch.eye(channels))

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) @ self.weight

    def fit(self, x: Tensor) -> None:
        self.mean.copy_(x.mean(0))
        deviation = x.std(0)
        # A channel that good parts never move must not make a detector out of rounding errors.
        deviation = deviation.clamp_min(1e-3 * float(deviation.mean()) + 1e-6)
        values, vectors = principal(_products((x - self.mean) / deviation) / len(x))
        scale = 1 / torch.sqrt(values.clamp_min(0) + SHRINK * values.mean() + 1e-12)
        self.weight.copy_(vectors * scale / deviation[:, None])
