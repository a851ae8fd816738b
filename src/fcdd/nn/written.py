"""A description as nodes of an ONNX graph: what runs on a CPU, and what is exported. The equations are its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor, nn

from fcdd.nn.centres import Centres, places
from fcdd.nn.compiled import Graph
from fcdd.nn.grids import enlarge_matrix, grid_matrix, neighbour_mean, shrink_matrix
from fcdd.nn.head import Head
from fcdd.nn.planes import Planes, Whiten

WHITE = 10.0  # standard deviations beyond which whitened features are cut off in 8 bits

if TYPE_CHECKING:
    from fcdd.nn.description import Description


def cells(graph: Graph, network: Description, images: str, height: int, width: int) -> str:
    """Images (N, 3, H, W) in 0…255 → A (N, 1, h, w), the weighted sum of the parts."""
    found = maps(graph, network, images, height, width)
    weighted = [
        graph.add("Mul", found[name], graph.constant(weight))
        for name, weight in zip(network.PARTS, network.weights, strict=True)
        if name in found
    ]
    return weighted[0] if len(weighted) == 1 else graph.add("Sum", *weighted)


def maps(graph: Graph, network: Description, images: str, height: int, width: int) -> dict[str, str]:
    """The parts' cells Aₖ (N, 1, h, w), not weighted, by name, as `Description.maps` gives them."""
    from fcdd.nn.description import coarse_side

    lit = relight(graph, network, images, width)
    found: dict[str, str] = {}
    side, channels = network.field.stride, sum(network.trunk.widths)
    if network.planes is not None or network.head is not None:
        x = _vectors(graph, features(graph, network, lit, height, width), channels)
        shape = -1, 1, height // side, width // side
        white = _whitened(graph, x, network.whiten)
        if network.planes is not None:
            squared = graph.add("Div", _planes(graph, white, network.planes), graph.constant(network.scale))
            found["planes"] = _norm(graph, squared, shape)
        if network.head is not None:
            found["head"] = _norm(graph, _squares(graph, _head(graph, white, network.head)), shape)
    if network.centres is not None:
        small = coarse_side(height), coarse_side(width)
        rows, columns = (shrink_matrix(side, fewer) for side, fewer in zip((height, width), small, strict=True))
        coarse = features(graph, network, _between(graph, lit, rows, columns), *small)
        shape = -1, 1, small[0] // side, small[1] // side
        few = _norm(graph, _centres(graph, coarse, network.centres, shape[2:]), shape)
        rows, columns = (
            enlarge_matrix(network.field, fewer, pixels) for fewer, pixels in zip(small, (height, width), strict=True)
        )
        found["centres"] = _between(graph, few, rows, columns)
    return found


def relight(graph: Graph, network: Description, images: str, width: int) -> str:
    """`Description.relight`: each channel brought to the good images' mean by a gain of at most a quarter."""
    mixed = graph.add("Conv", images, graph.constant(network.mix[:, :, None, None]), kernel_shape=[1, 1])
    rows = graph.add("MatMul", mixed, graph.constant(np.full((width, 1), 1 / width, np.float32)))
    mean = graph.add("Max", graph.add("ReduceMean", rows, graph.integers(2)), graph.constant(np.float32(1)))
    gain = graph.add("Div", graph.constant(network.level.view(1, 3, 1, 1)), mean)
    bounded = graph.add("Clip", gain, graph.constant(np.float32(0.8)), graph.constant(np.float32(1.25)))
    return graph.add("Mul", mixed, bounded)


def features(graph: Graph, network: Description, images: str, height: int, width: int) -> str:
    """Relit images (N, 3, H, W) → joined taps (N, C, h, w), each cell the mean of its 3×3 neighbourhood."""
    grid, sides = network.field, (height // network.field.stride, width // network.field.stride)
    taps = network.trunk.written(graph, images, height, width)
    joined = []
    for (tap, *shape), field in zip(taps, network.trunk.fields, strict=True):
        rows, columns = (neighbour_mean(n) @ grid_matrix(field, m, grid, n) for m, n in zip(shape, sides, strict=True))
        joined.append(_between(graph, tap, rows, columns))
    return graph.add("Concat", *joined, axis=1)


def _between(graph: Graph, x: str, rows: np.ndarray, columns: np.ndarray) -> str:
    """rows · x · columnsᵀ for every map of x (N, C, h, w)."""
    # Columns first: a product with one matrix at the right is one large product for all maps together.
    narrow = graph.add("MatMul", x, graph.constant(columns.T))
    return graph.add("MatMul", graph.constant(rows), narrow)


def _vectors(graph: Graph, features: str, channels: int) -> str:
    """(N, C, h, w) → (N·h·w, C)."""
    return graph.add("Reshape", graph.add("Transpose", features, perm=[0, 2, 3, 1]), graph.integers(-1, channels))


def _whitened(graph: Graph, x: str, whiten: Whiten) -> str:
    # The mean goes first: folded into a bias, it would be the difference of two large numbers.
    return graph.add("MatMul", graph.add("Sub", x, graph.constant(whiten.mean)), graph.constant(whiten.weight))


def _planes(graph: Graph, x: str, planes: Planes) -> str:
    """Squared distance (M, 1) to the nearest plane."""
    count, dimensions = planes.centres.shape
    offsets = (planes.directions.view(count, -1, dimensions) * planes.centres[:, None]).sum(-1).flatten()
    own, x = graph.rounded(x, -WHITE, WHITE) if graph.eight else (x, x)
    squared = graph.add(
        "Add", _products(graph, x, planes.centres, planes.centres.square().sum(1), -2.0), _squares(graph, x)
    )
    along = (_eight if graph.eight else _products)(graph, own, planes.directions, -offsets)
    split = graph.add("Reshape", along, graph.integers(-1, count, len(planes.directions) // count))
    explained = graph.add("ReduceSumSquare", split, graph.integers(2), keepdims=0)
    left = graph.add("Mul", graph.add("Sub", squared, explained), graph.constant(planes.weights))
    return graph.add("Max", graph.add("ReduceMin", left, graph.integers(1)), graph.constant(np.float32(0)))


def _centres(graph: Graph, features: str, centres: Centres, cells: tuple[int, ...]) -> str:
    """Features (N, C, h, w) → squared distance (N·h·w, 1) to the nearest centre, in its mean over good parts."""
    channels = len(centres.unit)
    where = np.zeros((1, channels + 2, *cells), np.float32)
    where[0, channels:] = places(*cells).T.view(2, *cells)
    alike = graph.add("Div", features, graph.constant(centres.unit.view(1, -1, 1, 1)))
    # Two empty channels to which the places are added: a constant would have to be repeated for every image instead.
    wider = graph.add("Pad", alike, graph.integers(0, 0, 0, 0, 0, 2, 0, 0), mode="constant")
    x = _vectors(graph, graph.add("Add", wider, graph.constant(where)), channels + 2)
    if graph.eight:
        return _nearly(graph, x, centres)
    products = _products(graph, x, centres.centres, centres.centres.square().sum(1), -2.0)
    least = graph.add("Add", graph.add("ReduceMin", products, graph.integers(1)), _squares(graph, x))
    return graph.add("Div", graph.add("Max", least, graph.constant(np.float32(0))), graph.constant(centres.scale))


def _nearly(graph: Graph, x: str, centres: Centres) -> str:
    """The same in 8 bits: the distance of the rounded vector to the nearest rounded centre, not rounded further.

    ‖x − c‖² = ‖x‖² − 2 (x·c − ‖c‖²/2), of which the largest is sought. What is larger than any centre is cut off.
    """
    own, x = graph.rounded(x, float(centres.centres.min()), float(centres.centres.max()))
    matrix, known = graph.weights(centres.centres.T)
    products = graph.add("Sub", graph.add("MatMul", own, matrix), graph.constant(known.square().sum(0) / 2))
    most = graph.add("Mul", graph.add("ReduceMax", products, graph.integers(1)), graph.constant(np.float32(-2)))
    least = graph.add("Max", graph.add("Add", most, _squares(graph, x)), graph.constant(np.float32(0)))
    return graph.add("Div", least, graph.constant(centres.scale))


def _head(graph: Graph, x: str, head: Head) -> str:
    for layer in head.layers:
        if isinstance(layer, nn.Linear):
            x = _products(graph, x, layer.weight, layer.bias)
        elif isinstance(layer, nn.BatchNorm1d):
            assert layer.running_var is not None
            assert layer.running_mean is not None
            gain = layer.weight / (layer.running_var + layer.eps).sqrt()
            x = graph.add("Mul", x, graph.constant(gain))
            x = graph.add("Add", x, graph.constant(layer.bias - layer.running_mean * gain))
        else:
            assert isinstance(layer, nn.LeakyReLU)
            x = graph.add("LeakyRelu", x, alpha=layer.negative_slope)
    return x


def _products(graph: Graph, x: str, directions: Tensor, offsets: Tensor, factor: float = 1.0) -> str:
    """factor · x · directionsᵀ + offsets: (M, D) → (M, K)."""
    # The constant is turned and scaled beforehand, which powers of two do without rounding.
    return graph.add("Gemm", x, graph.constant((factor * directions).T), graph.constant(offsets))


def _eight(graph: Graph, x: str, directions: Tensor, offsets: Tensor) -> str:
    """x · directionsᵀ + offsets with directions of 8 bits, for x that is rounded already."""
    # Subtracted: ONNX Runtime would join an addition with the product before it sees that this has 8 bits.
    return graph.add("Sub", graph.add("MatMul", x, graph.weights(directions.T)[0]), graph.constant(-offsets))


def _squares(graph: Graph, x: str) -> str:
    """‖x‖² (M, 1)."""
    return graph.add("ReduceSumSquare", x, graph.integers(1))


def _norm(graph: Graph, squared: str, shape: Sequence[int]) -> str:
    """√(d² + 1) − 1 of squared distances (N·h·w, 1), as cells (N, 1, h, w)."""
    one = graph.constant(np.float32(1))
    root = graph.add("Add", graph.add("Sqrt", graph.add("Add", squared, one)), one)
    return graph.add("Reshape", graph.add("Div", squared, root), graph.integers(*shape))
