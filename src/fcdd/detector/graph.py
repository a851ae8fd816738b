"""The exported graph: a detector with the resizing before it and the score and heatmap after it, as ONNX operators.

Input: image, uint8 RGB (N, H, W, 3) of any size. Outputs: cells A (N, h, w), score (N,), heatmap (N, H, W).
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections import Counter
from typing import Any, TypeGuard

import numpy as np
import onnx
import torch
from onnx import ModelProto, TensorProto, helper, numpy_helper

from fcdd.detector.detector import Detector
from fcdd.detector.result import Grid
from fcdd.detector.runtime import CELLS, HEATMAP, INPUT, SCORE
from fcdd.nn import written
from fcdd.nn.compiled import INPUT as INNER
from fcdd.nn.compiled import IR_VERSION, OPSET, Graph
from fcdd.nn.description import Description
from fcdd.nn.network import CellNetwork
from fcdd.progress import only_errors_of
from fcdd.regions import strongest

# Pillow resizes bytes with weights of 22 bits. Their upper and lower halves apart, every sum of weight times byte is a
# whole number below 2²⁴, which single precision holds exactly: any backend gives Pillow's own bytes.
HALF = 2**11


def build(detector: Detector, eight: bool = False) -> ModelProto:
    """The whole graph in single precision; with `eight`, distances are taken in 8 bits where the network can."""
    model = _network(detector, eight)
    graph = Nodes("fcdd")
    inner, outer = model.graph.input[0].name, model.graph.output[0].name
    height, width = (graph("Gather", graph("Shape", INPUT), graph.constant(axis, np.int64)) for axis in (1, 2))
    _prepare(graph, height, width, detector.grid.shape, inner)
    before = len(graph.nodes)
    _finish(graph, outer, height, width, detector)
    nodes = [*graph.nodes[:before], *model.graph.node, *graph.nodes[before:]]
    h, w = detector.grid.cells
    whole = helper.make_graph(
        nodes,
        "fcdd",
        [helper.make_tensor_value_info(INPUT, TensorProto.UINT8, ["N", "H", "W", 3])],
        [
            helper.make_tensor_value_info(CELLS, TensorProto.FLOAT, ["N", h, w]),
            helper.make_tensor_value_info(SCORE, TensorProto.FLOAT, ["N"]),
            helper.make_tensor_value_info(HEATMAP, TensorProto.FLOAT, ["N", "H", "W"]),
        ],
        [*model.graph.initializer, *graph.constants],
    )
    finished = helper.make_model(
        whole, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="fcdd"
    )
    onnx.checker.check_model(finished, full_check=True)
    return finished


def _network(detector: Detector, eight: bool) -> ModelProto:
    """The network alone: float (N, 3, H, W) in 0…255 → A (N, 1, h, w), for any N."""
    network = detector.network
    return _written(network, detector.grid.shape, eight) if is_written(network) else _traced(detector)


def is_written(network: CellNetwork) -> TypeGuard[Description]:
    """Whether the network writes its graph itself, which takes milliseconds, and can do so in 8 bits."""
    return isinstance(network, Description) and network.compiles


def _written(network: Description, shape: tuple[int, int], eight: bool) -> ModelProto:
    """The graph by which the network itself answers on a CPU, with its parts summed."""
    graph = Graph(eight)
    output = written.cells(graph, network, INNER, *shape)
    given = helper.make_tensor_value_info(INNER, TensorProto.FLOAT, ["N", 3, *shape])
    told = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
    return helper.make_model(helper.make_graph(graph.nodes, "network", [given], [told], graph.constants))


def _traced(detector: Detector) -> ModelProto:
    """The graph of a network of another kind, by torch's exporter, which takes seconds."""
    example = torch.zeros(2, 3, *detector.grid.shape)
    # The exporter talks to stdout and logs of its own.
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(), only_errors_of("torch.onnx"):
        warnings.simplefilter("ignore")
        traced = torch.export.export(detector.network, (example,), dynamic_shapes=({0: torch.export.Dim("N", min=1)},))
        program = torch.onnx.export(traced, dynamo=True, opset_version=OPSET, verbose=False)
    assert program is not None
    model = program.model_proto
    if model.functions:
        raise RuntimeError("the exporter left functions in the graph")
    _join_squares(model)
    return model


def _join_squares(model: ModelProto) -> None:
    """Σ x² as one operator instead of two: a pass less over the largest tensor, the distances along all directions."""
    constants = {constant.name: numpy_helper.to_array(constant) for constant in model.graph.initializer}
    uses = Counter(name for node in model.graph.node for name in node.input)
    squares = {
        node.output[0]: node
        for node in model.graph.node
        if node.op_type == "Pow" and np.all(constants.get(node.input[1], 0) == 2) and uses[node.output[0]] == 1
    }
    for node in [n for n in model.graph.node if n.op_type == "ReduceSum" and n.input[0] in squares]:
        square = squares[node.input[0]]
        node.op_type, node.input[0] = "ReduceSumSquare", square.input[0]
        model.graph.node.remove(square)
    used = {name for node in model.graph.node for name in node.input}
    for constant in [c for c in model.graph.initializer if c.name not in used]:
        model.graph.initializer.remove(constant)


class Nodes:
    """Operators, one after the other; each call adds one and gives the name of its output."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[TensorProto] = []

    def __call__(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        output = output or self._name(operator)
        self.nodes.append(helper.make_node(operator, inputs, [output], name=self._name(operator), **attributes))
        return output

    def constant(self, value: Any, kind: Any) -> str:
        name = self._name("constant")
        self.constants.append(numpy_helper.from_array(np.asarray(value, kind), name))
        return name

    def pair(self, operator: str, *inputs: str, **attributes: Any) -> tuple[str, str]:
        """An operator with two outputs."""
        outputs = self._name("first"), self._name("second")
        self.nodes.append(helper.make_node(operator, inputs, outputs, name=self._name(operator), **attributes))
        return outputs

    def _name(self, what: str) -> str:
        return f"{self.prefix}_{what}_{len(self.nodes)}_{len(self.constants)}"


def _prepare(graph: Nodes, height: str, width: str, shape: tuple[int, int], output: str) -> None:
    """The image at the network's shape, float (N, 3, H, W) in 0…255, bytes as `images.resize` gives them."""
    planes = graph("Cast", graph("Transpose", INPUT, perm=[0, 3, 1, 2]), to=TensorProto.FLOAT)
    fits = graph(
        "And",
        graph("Equal", height, graph.constant(shape[0], np.int64)),
        graph("Equal", width, graph.constant(shape[1], np.int64)),
    )
    same, other = Nodes("same"), Nodes("resized")
    same("Identity", planes, output="same_image")
    other.constants = graph.constants  # of the outer graph, which a branch may use
    _resize(other, planes, height, width, shape, "resized_image")
    size: list[str | int | None] = ["N", 3, *shape]
    branches = {
        f"{name}_branch": helper.make_graph(
            nodes.nodes, name, [], [helper.make_tensor_value_info(result, TensorProto.FLOAT, size)]
        )
        for name, nodes, result in (("then", same, "same_image"), ("else", other, "resized_image"))
    }
    graph("If", fits, output=output, **branches)


def _resize(graph: Nodes, planes: str, height: str, width: str, shape: tuple[int, int], output: str) -> None:
    """Antialiased bilinear, along the width, rounded, then along the height, rounded."""
    columns = graph("Transpose", _weights(graph, width, shape[1]), perm=[1, 0])
    narrow = _rounded(graph, *graph.pair("Split", graph("MatMul", planes, columns), axis=3, num_outputs=2))
    rows = graph("MatMul", _weights(graph, height, shape[0]), narrow)
    _rounded(graph, *graph.pair("Split", rows, axis=2, num_outputs=2), output=output)


def _weights(graph: Nodes, length: str, cells: int) -> str:
    """(2·cells, length): upper and lower halves of Pillow's 22-bit weights, whole numbers as floats.

    A triangle around each new pixel's centre, as wide as the coarser of the two grids, cut at the image's border.
    """

    def constant(value: Any) -> str:
        return graph.constant(value, np.float64)

    pixels = graph("Cast", length, to=TensorProto.DOUBLE)
    scale = graph("Div", pixels, constant(cells))
    reach = graph("Max", scale, constant(1))
    centre = graph("Mul", constant((np.arange(cells) + 0.5)[:, None]), scale)
    every = graph("Range", graph.constant(0, np.int64), length, graph.constant(1, np.int64))
    place = graph("Cast", every, to=TensorProto.DOUBLE)
    half = constant(0.5)
    first = graph("Floor", graph("Add", graph("Sub", centre, reach), half))
    end = graph("Floor", graph("Add", graph("Add", centre, reach), half))
    seen = graph("And", graph("GreaterOrEqual", place, first), graph("Less", place, end))
    distance = graph("Abs", graph("Div", graph("Add", graph("Sub", place, centre), half), reach))
    triangle = graph("Where", seen, graph("Max", graph("Sub", constant(1), distance), constant(0)), constant(0))
    share = graph("Div", triangle, graph("ReduceSum", triangle, graph.constant([1], np.int64)))
    whole = graph("Floor", graph("Add", graph("Mul", share, constant(HALF * HALF)), half))
    upper = graph("Floor", graph("Div", whole, constant(HALF)))
    lower = graph("Sub", whole, graph("Mul", upper, constant(HALF)))
    return graph("Cast", graph("Concat", upper, lower, axis=0), to=TensorProto.FLOAT)


def _rounded(graph: Nodes, upper: str, lower: str, output: str | None = None) -> str:
    """⌊(upper·2¹¹ + lower) / 2²² + ½⌋, without a number that single precision would round."""
    half = graph.constant(HALF, np.float32)
    carry = graph("Floor", graph("Div", lower, half))
    total = graph("Add", graph("Add", upper, carry), graph.constant(HALF // 2, np.float32))
    return graph("Floor", graph("Div", total, half), output=output)


def _finish(graph: Nodes, A: str, height: str, width: str, detector: Detector) -> None:
    """Cells, zero outside the region of interest; the mean of the strongest of them; Gaussians at the image's size."""
    inside = detector.inside
    flat = graph("Squeeze", A, graph.constant([1], np.int64))
    graph("Where", graph.constant(inside, np.bool_), flat, graph.constant(0, np.float32), output=CELLS)
    row = graph("Flatten", CELLS, axis=1)
    seen = graph("Gather", row, graph.constant(np.flatnonzero(inside), np.int64), axis=1)
    count = strongest(int(inside.sum()), detector.top)
    largest, _ = graph.pair("TopK", seen, graph.constant([count], np.int64), axis=1)
    graph("ReduceMean", largest, graph.constant([1], np.int64), keepdims=0, output=SCORE)
    rows = _gaussians(graph, height, detector.grid, 0)
    columns = graph("Transpose", _gaussians(graph, width, detector.grid, 1), perm=[1, 0])
    graph("MatMul", graph("MatMul", rows, CELLS), columns, output=HEATMAP)


def _gaussians(graph: Nodes, pixels: str, grid: Grid, axis: int) -> str:
    """(pixels, cells): the weights of `Grid.heatmap`."""

    def constant(value: Any) -> str:
        return graph.constant(value, np.float64)

    every = graph("Range", graph.constant(0, np.int64), pixels, graph.constant(1, np.int64))
    place = graph("Add", graph("Cast", every, to=TensorProto.DOUBLE), constant(0.5))
    step = graph("Div", constant(grid.shape[axis]), graph("Cast", pixels, to=TensorProto.DOUBLE))
    place = graph("Sub", graph("Mul", place, step), constant(0.5))
    column = graph("Unsqueeze", place, graph.constant([1], np.int64))
    distance = graph("Sub", column, constant(grid.centres(axis)))
    exponent = graph("Div", graph("Mul", distance, distance), constant(-2 * grid.sigma**2))
    density = graph("Add", graph("Exp", exponent), constant(1e-30))
    share = graph("Div", density, graph("ReduceSum", density, graph.constant([1], np.int64)))
    return graph("Cast", share, to=TensorProto.FLOAT)
