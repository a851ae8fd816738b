"""A tiny exported model whose answer can be worked out by hand, and images for it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper
from PIL import Image

from fcdd.detector import onnxfile
from fcdd.detector.calibration import Calibration
from fcdd.detector.result import Grid
from fcdd.detector.runtime import CELLS, INPUT
from fcdd.detector.settings import Settings

SIDE, STRIDE = 32, 8


def write_model(path: Path, reject_above: float = 0.5) -> Path:
    """The score of an image is its mean brightness in 0..1; NG above `reject_above`."""
    nodes = [
        helper.make_node("Cast", [INPUT], ["float"], to=TensorProto.FLOAT),
        helper.make_node("Div", ["float", "white"], ["scaled"]),
        helper.make_node("Transpose", ["scaled"], ["planes"], perm=[0, 3, 1, 2]),
        helper.make_node("ReduceMean", ["planes", "channel"], ["grey"], keepdims=1),
        helper.make_node("AveragePool", ["grey"], ["pooled"], kernel_shape=[STRIDE] * 2, strides=[STRIDE] * 2),
        helper.make_node("Squeeze", ["pooled", "channel"], [CELLS]),
    ]
    graph = helper.make_graph(
        nodes,
        "brightness",
        [helper.make_tensor_value_info(INPUT, TensorProto.UINT8, ["N", "H", "W", 3])],
        [helper.make_tensor_value_info(CELLS, TensorProto.FLOAT, ["N", "h", "w"])],
        [
            helper.make_tensor("white", TensorProto.FLOAT, [], [255.0]),
            helper.make_tensor("channel", TensorProto.INT64, [1], [1]),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    cells = SIDE // STRIDE
    info = {
        "settings": asdict(Settings(top=1.0)),
        "seed": 0,
        "grid": asdict(Grid((SIDE, SIDE), STRIDE, 3.5, 4.0)),
        "calibration": Calibration(tuple(np.linspace(0, 0.5, 99)), reject_above=reject_above, usual=0.1).to_dict(),
        "card": {"good": 0, "calibration": 99, "defects": 0, "fingerprint": "", "trained": [], "versions": {}},
        "inside": ["1" * cells] * cells,
        "precision": "fp32",
        "parity": {},
    }
    onnxfile.write(path, model.SerializeToString(), info)
    return path


def write_images(folder: Path, count: int) -> dict[str, float]:
    """`count` grey images in subfolders of 100, no two of them alike; each one's mean brightness by its name."""
    truth = {}
    for index in range(count):
        pixels = np.full((SIDE, SIDE), index % 256, np.uint8)
        pixels[0, : index // 256] ^= 1
        name = f"{index // 100:02}/{index:05}.png"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(folder / name, compress_level=1)
        truth[name] = float(pixels.mean()) / 255
    return truth
