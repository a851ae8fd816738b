"""From the low-resolution map A to full resolution: receptive-field upsampling and the contrast curve."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fcdd.nn.fields import Field


def upsample(A: Tensor, field: Field, size: int | tuple[int, int], sigma: float) -> Tensor:
    """Algorithm 1: A (N, C, h, w) → A′ (N, C, H, W) = Σ over cells of a · G₂(centre of the cell's field, σ).

    G₂ is the normal density 1/(2πσ²)·exp(−‖x − c‖²/(2σ²)) within the cell's receptive field and 0 outside of it, so
    this is a transposed convolution with a fixed kernel of the field's size and the network's stride. The kernel is
    an outer product, so the convolution is two small matrix products, A′ = G_h · A · G_wᵀ, far cheaper and exact
    for every size and offset. A constant map a comes out near a/stride² away from the borders.
    """
    height, width = (size, size) if isinstance(size, int) else size
    rows = torch.from_numpy(gaussian_matrix(field, A.shape[-2], height, sigma)).to(A)
    columns = torch.from_numpy(gaussian_matrix(field, A.shape[-1], width, sigma)).to(A)
    return rows @ A @ columns.T


@lru_cache(maxsize=64)
def gaussian_matrix(field: Field, cells: int, pixels: int, sigma: float) -> NDArray[np.float32]:
    """(pixels, cells): the density of pixel p under a Gaussian on cell i's centre, cut at the cell's field."""
    if sigma <= 0:
        raise ValueError(f"sigma {sigma}: must be positive")
    distance = np.arange(pixels)[:, None] - np.array(field.centres(cells))
    density = np.exp(-(distance**2) / (2 * sigma**2)) / (math.sqrt(2 * math.pi) * sigma)
    return np.where(np.abs(distance) <= (field.size - 1) / 2, density, 0.0).astype(np.float32)


def normalise(maps: Tensor, eta: float = 0.97, reference: Tensor | None = None) -> Tensor:
    """The appendix's contrast curve I = min((A′ − min X) / q_η(X − min X), 1), clipped below at 0; values in [0, 1].

    X is `reference`, any set of maps (a balanced one makes images comparable), or each of `maps` (N, …) on its own
    where none is given. q_η is the η-quantile of X's values.
    """
    if not 0 < eta <= 1:
        raise ValueError(f"eta {eta}: must lie in (0, 1]")
    flat = maps.flatten(1) if reference is None else reference.flatten()[None]
    low = flat.min(1).values
    quantile = _quantile(flat - low[:, None], eta)
    shape = (-1,) + (1,) * (maps.dim() - 1)
    scale = torch.where(quantile > 0, quantile, torch.ones_like(quantile))
    return ((maps - low.view(shape)) / scale.view(shape)).clamp(0, 1)


def _quantile(values: Tensor, eta: float) -> Tensor:
    """Row-wise η-quantile (N, M) → (N,) with linear interpolation; torch.quantile refuses more than 2²⁴ values."""
    return torch.from_numpy(np.quantile(values.cpu().numpy(), eta, axis=1)).to(values)
