"""Smaller ONNX graphs: half-precision weights, or 8-bit convolutions in the later half of a network."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

from fcdd.detector.runtime import INPUT
from fcdd.progress import only_errors_of

SMALL = 1024  # constants of fewer values stay as they are: nothing is won


def half(model: ModelProto) -> bytes:
    """Weights stored in half precision, computed in single: half the file, and no operator that a CPU lacks."""
    reduced = ModelProto()
    reduced.CopyFrom(model)
    casts = []
    for constant in reduced.graph.initializer:
        values = numpy_helper.to_array(constant)
        if values.dtype != np.float32 or values.size < SMALL or np.abs(values).max() > np.finfo(np.float16).max:
            continue
        name = constant.name
        constant.CopyFrom(numpy_helper.from_array(values.astype(np.float16), f"{name}_half"))
        casts.append(helper.make_node("Cast", [f"{name}_half"], [name], to=TensorProto.FLOAT))
    nodes = [*casts, *reduced.graph.node]
    del reduced.graph.node[:]
    reduced.graph.node.extend(nodes)
    onnx.checker.check_model(reduced)
    return bytes(reduced.SerializeToString())


def quantised(model: ModelProto, inputs: Sequence[NDArray[np.uint8]]) -> bytes:
    """Convolutions of the trunk in 8 bits, their ranges from `inputs` RGB (H, W, 3) of the network's shape.

    For networks whose graph is traced. Only dense ones in the later half: the early layers, whose errors spread, and
    the depthwise ones, which take little time, stay as they are.
    """
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.rest = iter(inputs)

        def get_next(self) -> dict[str, NDArray[np.uint8]] | None:
            array = next(self.rest, None)
            return None if array is None else {INPUT: array[None]}

    nodes = _later(model)
    with tempfile.TemporaryDirectory() as folder:
        whole, reduced = Path(folder) / "whole.onnx", Path(folder) / "reduced.onnx"
        onnx.save(model, whole)
        with only_errors_of(""):  # it warns that the model was not preprocessed, as intended
            quantize_static(
                whole,
                reduced,
                Reader(),
                quant_format=QuantFormat.QDQ,
                per_channel=True,
                activation_type=QuantType.QUInt8,
                weight_type=QuantType.QInt8,
                nodes_to_quantize=nodes,
            )
        return reduced.read_bytes()


def _later(model: ModelProto) -> list[str]:
    """Dense convolutions in the later half of the trunk and their activations, whose range is what counts."""
    trunk = [node for node in model.graph.node if node.op_type == "Conv" and node.input[1].startswith("trunk.")]
    groups = {node.name: next((a.i for a in node.attribute if a.name == "group"), 1) for node in trunk}
    chosen = [node for node in trunk[len(trunk) // 2 :] if groups[node.name] == 1]
    outputs = {node.output[0] for node in chosen}
    activations = [n.name for n in model.graph.node if n.op_type in ("Clip", "Relu") and n.input[0] in outputs]
    return [node.name for node in chosen] + activations
