"""From images in [0, 1] to network input, with constants fitted on the nominal training set and kept in the model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import torch
from torch import Tensor

from fcdd.data import Source
from fcdd.errors import DataError, ModelError

Kind = Literal["lcn", "standard", "none"]
FLAT = 1e-6  # a mean absolute deviation below this is rounding, not contrast


def local_contrast(images: Tensor) -> Tensor:
    """Per-image L1 contrast normalisation, (N, C, H, W) → same shape: (x − x̄) / mean|x − x̄| over all of C, H, W.

    A constant image has no contrast to normalise and becomes zero.
    """
    centred = images - images.mean((1, 2, 3), keepdim=True)
    deviation = centred.abs().mean((1, 2, 3), keepdim=True)
    return centred / torch.where(deviation > FLAT, deviation, 1.0)


@dataclass(frozen=True)
class Preprocess:
    """(z − offset) / scale per channel, where z is the local contrast of the image ('lcn') or the image itself.

    'lcn': offset is the smallest z of the training set and scale its range, so training images land in [0, 1].
    'standard': offset is the mean and scale the standard deviation. 'none': the image as it is, no constants.
    """

    kind: Kind
    offset: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()

    def __call__(self, images: Tensor) -> Tensor:
        """Images (N, C, H, W) float in [0, 1] → network input of the same shape."""
        if self.kind == "none":
            return images
        if images.shape[1] != len(self.offset):
            raise ValueError(f"fitted on {len(self.offset)} channels, called with {images.shape[1]}")
        z = local_contrast(images) if self.kind == "lcn" else images
        offset, scale = (z.new_tensor(v).view(1, -1, 1, 1) for v in (self.offset, self.scale))
        return (z - offset) / scale

    def to_dict(self) -> dict[str, Any]:
        """What JSON can hold; `from_dict` reads it back to an equal object."""
        return {"kind": self.kind, "offset": list(self.offset), "scale": list(self.scale)}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Preprocess:
        """The inverse of `to_dict`; `ModelError` where a model's metadata does not hold a usable preprocessing."""
        if not isinstance(values, Mapping) or set(values) != {"kind", "offset", "scale"}:
            raise ModelError(f"preprocessing must have exactly kind, offset and scale, not {values!r}")
        if values["kind"] not in get_args(Kind):
            raise ModelError(f"unknown preprocessing {values['kind']!r}; known are {', '.join(get_args(Kind))}")
        kind = cast(Kind, values["kind"])
        offset, scale = _constants(values["offset"], "offset"), _constants(values["scale"], "scale")
        if len(offset) != len(scale) or (kind == "none") != (not offset):
            raise ModelError(f"preprocessing {kind!r} with {len(offset)} offsets and {len(scale)} scales")
        if any(s <= 0 for s in scale):
            raise ModelError(f"preprocessing scale must be positive, not {list(scale)}")
        return Preprocess(kind, offset, scale)


def _constants(values: object, name: str) -> tuple[float, ...]:
    if not isinstance(values, list | tuple):
        raise ModelError(f"preprocessing {name} must be a list of numbers, not {values!r}")
    if not all(isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) for v in values):
        raise ModelError(f"preprocessing {name} must be finite numbers, not {values!r}")
    return tuple(float(v) for v in values)


def fit(kind: Kind, source: Source, batch: int = 256) -> Preprocess:
    """The constants of `kind` from all nominal training images, read once, `batch` at a time, in float64.

    Minima, maxima and sums of uint8 values are exact in float64, so the batch size does not change the result by more
    than the rounding of one image's mean. A channel without spread gets scale 1.
    """
    if kind == "none":
        return Preprocess("none")
    if len(source) == 0:
        raise DataError("cannot fit the preprocessing: there are no nominal training images")
    offset, scale = _range(source, batch) if kind == "lcn" else _moments(source, batch)
    scale = torch.where(scale > FLAT, scale, 1.0)
    return Preprocess(kind, tuple(offset.tolist()), tuple(scale.tolist()))


def _batches(source: Source, batch: int) -> Iterator[Tensor]:
    """All images in order, as float64 in 0…255, few enough at a time to keep 64 MB."""
    for start in range(0, len(source), batch):
        images = source[torch.arange(start, min(start + batch, len(source)))]
        for part in torch.split(images, max(1, 2**23 // images[0].numel())):
            yield part.double()


def _range(source: Source, batch: int) -> tuple[Tensor, Tensor]:
    """Smallest local contrast per channel, and the distance to the largest; both (C,)."""
    contrasts = (local_contrast(x / 255) for x in _batches(source, batch))
    extremes = torch.stack([torch.stack([z.amin((0, 2, 3)), z.amax((0, 2, 3))]) for z in contrasts])
    low, high = extremes[:, 0].amin(0), extremes[:, 1].amax(0)
    return low, high - low


def _moments(source: Source, batch: int) -> tuple[Tensor, Tensor]:
    """Mean and population standard deviation per channel; both (C,)."""
    total, squares, count = torch.zeros(1).double(), torch.zeros(1).double(), 0
    for x in _batches(source, batch):
        total = total + x.sum((0, 2, 3))
        squares = squares + x.square().sum((0, 2, 3))
        count += x[:, 0].numel()
    mean = total / count
    variance = (squares / count - mean.square()).clamp(min=0)
    return mean / 255, variance.sqrt() / 255
