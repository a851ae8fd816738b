"""The graph's parts against what they stand for: Pillow, the Gaussian heatmap, the detector itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from fcdd import images
from fcdd.detector import graph
from fcdd.detector.detector import Detector
from fcdd.detector.export import Parity, export
from fcdd.detector.graph import Nodes
from fcdd.detector.result import Grid
from fcdd.detector.runtime import OUTPUTS, Backend, Runtime, session
from fcdd.nn.architecture import Architecture

from ..conftest import Deployed


def session_of(nodes: Nodes, outputs: dict[str, list[object]]) -> onnxruntime.InferenceSession:
    """A model of `nodes` alone, from uint8 images."""
    value = helper.make_tensor_value_info("image", TensorProto.UINT8, ["N", "H", "W", 3])
    told = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()]
    body = helper.make_graph(nodes.nodes, "g", [value], told, nodes.constants)
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", graph.OPSET)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    return session(model.SerializeToString(), 1, "test")


def size_of(nodes: Nodes) -> tuple[str, str]:
    shape = nodes("Shape", "image")
    return nodes("Gather", shape, nodes.constant(1, np.int64)), nodes("Gather", shape, nodes.constant(2, np.int64))


@pytest.mark.parametrize(
    "size",
    [(64, 96), (128, 192), (192, 288), (65, 95), (31, 17), (1, 1), (1, 700), (900, 40), (640, 480), (97, 1500)],
    ids=str,
)
def test_resizing_gives_the_very_bytes_of_images_resize(size: tuple[int, int]) -> None:
    nodes = Nodes("t")
    graph._prepare(nodes, *size_of(nodes), (64, 96), "out")
    random = np.random.default_rng(sum(size))
    noise = random.integers(0, 256, (2, *size, 3), dtype=np.uint8)
    noise[1] = 255 * (noise[1] > 127)  # hard edges make ties of rounding
    (found,) = session_of(nodes, {"out": ["N", 3, 64, 96]}).run(None, {"image": noise})
    expected = np.stack([images.resize(image, (64, 96)).transpose(2, 0, 1) for image in noise])
    np.testing.assert_array_equal(found, expected)


def test_gaussians_are_those_of_the_heatmap() -> None:
    grid = Grid((64, 96), 8, 3.0, 8.0)
    nodes = Nodes("t")
    height, width = size_of(nodes)
    nodes("Identity", graph._gaussians(nodes, height, grid, 0), output="rows")
    nodes("Identity", graph._gaussians(nodes, width, grid, 1), output="columns")
    found = session_of(nodes, {"rows": ["H", 8], "columns": ["W", 12]})
    cells = np.random.default_rng(0).random((8, 12), dtype=np.float32)
    for size in ((64, 96), (7, 300), (1, 1)):
        rows, columns = found.run(None, {"image": np.zeros((1, *size, 3), np.uint8)})
        np.testing.assert_allclose(rows @ cells @ columns.T, grid.heatmap(cells, size), rtol=1e-5)


@pytest.mark.parametrize("size", [(128, 128), (90, 260)], ids=str)
def test_the_whole_graph_answers_as_the_detector_for_any_size_and_number(
    deployed: Deployed, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployed.detector, "framing", "stretch")
    whole = session(Runtime(deployed.onnx).graph, 1, "test")
    for count in (1, 3):
        paths = images.find(deployed.plates / "test")[5 : 5 + count]
        batch = np.stack([images.resize(images.load(path), size) for path in paths])
        cells, scores, heatmaps = whole.run(OUTPUTS, {"image": batch})
        for one, expected in enumerate(deployed.detector.predict(list(batch))):
            np.testing.assert_allclose(cells[one], expected.cells, rtol=1e-3, atol=1e-4)
            assert scores[one] == pytest.approx(expected.score, rel=1e-5)
            np.testing.assert_allclose(heatmaps[one], expected.heatmap, atol=1e-4 * np.ptp(expected.heatmap))


def test_squares_are_summed_in_one_pass_and_nothing_is_left_over(deployed: Deployed) -> None:
    """A square of its own costs a pass over the largest tensor, a tenth of an answer's time."""
    body = onnx.load_from_string(Runtime(deployed.onnx).graph).graph
    assert "Pow" not in {node.op_type for node in body.node}
    branches = [a.g for node in body.node for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    used = {name for part in (body, *branches) for node in part.node for name in node.input}
    assert {constant.name for constant in body.initializer} <= used


def test_a_deep_trunk_that_learnt_whole_pictures_goes_along(deployed: Deployed, tmp_path: Path) -> None:
    settings = deployed.detector.settings
    deep = replace(settings, architecture=replace(settings.architecture, trunk="efficientnet-lite0-deep"))
    stains = images.find(deployed.plates / "test" / "stain")
    detector = Detector(deep).fit(deployed.plates / "train" / "good", stains, whole=True)
    runtime, parity = export(detector, tmp_path / "m.onnx")
    assert isinstance(parity, Parity)
    assert parity.holds
    assert runtime.card["whole"]


def test_a_region_of_interest_and_a_head_of_labelled_defects_go_along(deployed: Deployed, tmp_path: Path) -> None:
    roi = np.zeros((64, 64), np.bool_)
    roi[8:40, 16:] = True
    stains = images.find(deployed.plates / "test" / "stain")
    detector = Detector(deployed.detector.settings, roi=roi).fit(deployed.plates / "train" / "good", stains)
    assert detector.network.head is not None
    runtime, _ = export(detector, tmp_path / "m.onnx")
    assert np.array_equal(runtime.inside, detector.inside)
    for path in images.find(deployed.plates / "test")[::4]:
        found, expected = runtime.predict(path), detector.predict(path)
        assert found.score == pytest.approx(expected.score, rel=1e-4)
        assert (found.cells[~detector.inside] == 0).all()
        assert (found.verdict, found.p_value) == (expected.verdict, expected.p_value)


def test_every_part_of_the_sum_goes_along(deployed: Deployed, tmp_path: Path) -> None:
    every = Architecture(planes=8, directions=4, dimensions=8, centres=40)
    settings = replace(deployed.detector.settings, architecture=every, method="sum")
    good = images.find(deployed.plates / "train" / "good")
    detector = Detector(settings).fit(good)
    parity = export(detector, tmp_path / "m.onnx", good)[1]
    assert isinstance(parity, Parity)
    assert parity.holds
    for backend in get_args(Backend):
        found = Runtime(tmp_path / "m.onnx", backend=backend)
        for path in images.find(deployed.plates / "test")[::4]:
            expected = detector.predict(path)
            assert found.predict(path).score == pytest.approx(expected.score, rel=1e-4)
            assert found.predict(path).verdict == expected.verdict
