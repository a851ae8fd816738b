"""Receptive-field size, stride and centre of a stack of layers, computed from the layers themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch import nn


@dataclass(frozen=True)
class Field:
    """The square receptive field of each output cell, in input pixels; pixel i has its centre at coordinate i.

    Cell i sees the pixels from `start + stride·i − (size−1)/2` to `start + stride·i + (size−1)/2`.
    """

    size: int = 1
    stride: int = 1
    start: float = 0.0  # centre of the first cell's field

    def through(self, kernel: int, stride: int, padding: int, dilation: int = 1) -> Field:
        """The field after one more sliding window of `kernel` cells."""
        reach = dilation * (kernel - 1)
        return Field(
            size=self.size + reach * self.stride,
            stride=self.stride * stride,
            start=self.start + (reach / 2 - padding) * self.stride,
        )

    def centres(self, cells: int) -> list[float]:
        """Centre coordinates of `cells` cells along one axis."""
        return [self.start + self.stride * i for i in range(cells)]


def receptive_field(layers: Iterable[nn.Module]) -> Field:
    """The field of the last of `layers`, applied in order; a Sequential counts as its children.

    Convolutions and poolings widen the field, layers that work per position leave it; any other layer is an error,
    because guessing its field would put the heat in the wrong place.
    """
    field = Field()
    for layer in _flat(layers):
        if isinstance(layer, nn.Conv2d | nn.MaxPool2d | nn.AvgPool2d):
            field = field.through(*_window(layer))
        elif not isinstance(layer, nn.BatchNorm2d | nn.ReLU | nn.ReLU6 | nn.LeakyReLU | nn.Identity):
            raise TypeError(f"the receptive field of {type(layer).__name__} is not known")
    return field


def _flat(layers: Iterable[nn.Module]) -> Iterable[nn.Module]:
    for layer in layers:
        if isinstance(layer, nn.Sequential):
            yield from _flat(layer)
        else:
            yield layer


def _window(layer: nn.Conv2d | nn.MaxPool2d | nn.AvgPool2d) -> tuple[int, int, int, int]:
    dilation = 1 if isinstance(layer, nn.AvgPool2d) else _side(layer, layer.dilation)
    padding = layer.padding
    if isinstance(padding, str):
        raise TypeError(f"{type(layer).__name__} with padding={padding!r}: give it as a number")
    return _side(layer, layer.kernel_size), _side(layer, layer.stride), _side(layer, padding), dilation


def _side(layer: nn.Module, value: int | tuple[int, ...]) -> int:
    sides = {value} if isinstance(value, int) else set(value)
    if len(sides) != 1:
        raise TypeError(f"{type(layer).__name__} is not square: {value}")
    return sides.pop()
