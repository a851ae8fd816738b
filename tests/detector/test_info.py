"""Descriptions that make no sense, in files whose checksums hold: every one a ModelError, at once, and exit code 2."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, external_data_helper, numpy_helper

from fcdd import modelfile
from fcdd.detector import onnxfile
from fcdd.detector.detector import Detector
from fcdd.detector.runtime import Runtime
from fcdd.errors import ModelError

from ..batch.brightness import write_model
from ..conftest import Deployed
from ..invoke import fcdd

Spoil = Callable[[dict[str, Any]], object]

SPOILT: dict[str, Spoil] = {
    "no settings": lambda info: info.pop("settings"),
    "settings a list": lambda info: info.update(settings=[1]),
    "an unknown setting": lambda info: info["settings"].update(architecture=7),
    "top of zero": lambda info: info["settings"].update(top=0),
    "top a text": lambda info: info["settings"].update(top="1"),
    "sigma of NaN": lambda info: info["grid"].update(sigma=math.nan),
    "sigma of zero": lambda info: info["grid"].update(sigma=0),
    "no grid": lambda info: info.update(grid=None),
    "shape of three": lambda info: info["grid"].update(shape=[32, 32, 3]),
    "shape beyond memory": lambda info: info["grid"].update(shape=[10**9, 10**9]),
    "stride of zero": lambda info: info["grid"].update(stride=0),
    "stride beyond the shape": lambda info: info["grid"].update(stride=4096),
    "a further key of the grid": lambda info: info["grid"].update(further=1),
    "no scores": lambda info: info["calibration"].update(scores=[]),
    "scores of NaN": lambda info: info["calibration"].update(scores=[0.1, math.nan]),
    "scores beyond floats": lambda info: info["calibration"].update(scores=[10**400]),
    "calibration a text": lambda info: info.update(calibration="good"),
    "a usual heat of NaN": lambda info: info["calibration"].update(usual=math.nan),
    "a usual heat without end": lambda info: info["calibration"].update(usual=math.inf),
    "a negative pixel floor": lambda info: info.update(pixel_floor=-1),
    "versions a list": lambda info: info.update(versions=[1]),
    "other versions a number": lambda info: info.update(versions={"number": 1, "before": None, "others": 3}),
    "other versions of nothing": lambda info: info.update(versions={"number": 1, "before": None, "others": [{}]}),
    "a version without a number": lambda info: info.update(versions={"number": None, "before": None, "others": []}),
    "seed a fraction": lambda info: info.update(seed=0.5),
    "card a number": lambda info: info.update(card=5),
    "trained on numbers": lambda info: info["card"].update(trained=[1]),
    "card without versions": lambda info: info["card"].pop("versions"),
}
ONNX_ALONE: dict[str, Spoil] = {
    "inside of letters": lambda info: info.update(inside=["abcd"] * 4),
    "inside of another shape": lambda info: info.update(inside=["11"]),
    "inside ragged": lambda info: info.update(inside=["1111", "11", "1111", "1111"]),
    "nothing inside": lambda info: info.update(inside=["0000"] * 4),
    "parity a list": lambda info: info.update(parity=[]),
    "precision a number": lambda info: info.update(precision=32),
}


@pytest.fixture
def bright(tmp_path: Path) -> tuple[bytes, dict[str, Any]]:
    return onnxfile.read(write_model(tmp_path / "bright.onnx"))


@pytest.mark.parametrize("what", [*SPOILT, *ONNX_ALONE])
def test_an_exported_model_with_a_senseless_description(
    what: str, bright: tuple[bytes, dict[str, Any]], tmp_path: Path
) -> None:
    graph, info = bright
    {**SPOILT, **ONNX_ALONE}[what](info)
    onnxfile.write(tmp_path / "m.onnx", graph, info)
    with pytest.raises(ModelError, match=r"m\.onnx: "):
        Runtime(tmp_path / "m.onnx")


@pytest.mark.parametrize("what", SPOILT)
def test_a_trained_model_with_a_senseless_description(what: str, deployed: Deployed, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    deployed.detector.save(path)
    tensors, info = modelfile.read(path, "detector")
    SPOILT[what](info)
    modelfile.write(path, "detector", tensors, info)
    with pytest.raises(ModelError, match=r"m\.safetensors: "):
        Detector.load(path)


def test_tensors_that_do_not_fit_are_a_typed_error(deployed: Deployed, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    deployed.detector.save(path)
    tensors, info = modelfile.read(path, "detector")
    modelfile.write(path, "detector", dict(list(tensors.items())[:-1]), info)
    with pytest.raises(ModelError, match=r"m\.safetensors: its description makes no sense"):
        Detector.load(path)


def test_keys_of_newer_methods_are_let_through(bright: tuple[bytes, dict[str, Any]], tmp_path: Path) -> None:
    graph, info = bright
    onnxfile.write(tmp_path / "m.onnx", graph, {**info, "method": "planes", "card": {**info["card"], "more": [1]}})
    assert Runtime(tmp_path / "m.onnx").grid.cells == (4, 4)


HEADERS = {
    "a list": "[]",
    "a number": "5",
    "nested beyond reason": "[" * 100_000,
    "info a list": json.dumps({"format": "fcdd-runtime", "schema": 1, "info": [1], "sha256": ""}),
    "info half a character": '{"format": "fcdd-runtime", "schema": 1, "info": "\\ud800", "sha256": ""}',
    "schema a text": json.dumps({"format": "fcdd-runtime", "schema": "one", "info": "{}", "sha256": ""}),
    "schema without end": '{"format": "fcdd-runtime", "schema": 1e999, "info": "{}", "sha256": ""}',
    "format a number": json.dumps({"format": 3, "schema": 1, "info": "{}", "sha256": ""}),
}


@pytest.mark.parametrize("what", HEADERS)
def test_headers_that_make_no_sense(what: str) -> None:
    with pytest.raises(ModelError, match=r"m\.onnx: its description is damaged"):
        modelfile.header_of(Path("m.onnx"), "runtime", HEADERS[what])


@pytest.mark.parametrize("text", ["[]", "3", "nonsense", "{" * 10, "[" * 100_000])
def test_an_info_that_is_no_object(text: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="holds no JSON object"):
        modelfile.info_of(tmp_path / "m.onnx", {"info": text})


@pytest.mark.parametrize("content", [b"\xff" * 3_000_000, b"\x08\x01" * 1_500_000, b"\x00" * 3_000_000, b""])
@pytest.mark.parametrize("suffix", [".onnx", ".safetensors"])
def test_rubbish_is_refused_within_a_second(content: bytes, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"m{suffix}"
    path.write_bytes(content)
    begun = time.process_time()
    with pytest.raises(ModelError):
        Runtime(path) if suffix == ".onnx" else Detector.load(path)
    assert time.process_time() - begun < 1


@pytest.mark.parametrize("suffix", [".onnx", ".safetensors"])
def test_pipes_and_devices_are_no_models(suffix: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    os.mkfifo(tmp_path / f"pipe{suffix}")
    (tmp_path / f"zero{suffix}").symlink_to("/dev/zero")
    for name in ("pipe", "zero", "in"):
        code, _, err = fcdd("drift", tmp_path / f"{name}{suffix}", tmp_path / "in")
        assert (code, f"{name}{suffix}: " in err) == (2, True)


def outside(model: onnx.ModelProto, how: str) -> None:
    """Let one tensor of the graph be data of another file."""
    tensor = numpy_helper.from_array(np.ones(1000, np.float32), "outside")
    if how != "location":
        external_data_helper.set_external_data(tensor, "secret.bin")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    if how == "attribute":
        model.graph.node.append(onnx.helper.make_node("Constant", [], ["unused"], value=tensor))
    elif how == "subgraph":
        inner = onnx.helper.make_graph([], "inner", [], [], [tensor])
        model.graph.node.append(onnx.helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=inner))
    else:
        model.graph.initializer.append(tensor)


@pytest.mark.parametrize("how", ["initializer", "location", "attribute", "subgraph"])
def test_weights_in_other_files_are_refused(
    how: str, bright: tuple[bytes, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.ones(1000, np.float32).tofile("secret.bin")
    graph, info = bright
    model = onnx.load_from_string(graph)
    outside(model, how)
    onnxfile.write(tmp_path / "m.onnx", model.SerializeToString(), info)
    with pytest.raises(ModelError, match=r"m\.onnx: keeps weights in other files"):
        Runtime(tmp_path / "m.onnx")


def test_a_graph_of_something_else_is_refused(bright: tuple[bytes, dict[str, Any]], tmp_path: Path) -> None:
    graph, info = bright
    model = onnx.load_from_string(graph)
    model.graph.output[0].name = "pooled"
    onnxfile.write(tmp_path / "m.onnx", model.SerializeToString(), info)
    with pytest.raises(ModelError, match="does not lead from image to cells"):
        Runtime(tmp_path / "m.onnx")
    onnxfile.write(
        tmp_path / "n.onnx", graph, {**info, "grid": {**info["grid"], "shape": [64, 64]}, "inside": ["1" * 8] * 8}
    )
    Runtime(tmp_path / "n.onnx").predict(np.zeros((5, 5, 3), np.uint8))
    model = onnx.load_from_string(graph)
    next(node for node in model.graph.node if node.op_type == "AveragePool").attribute[1].ints[:] = [16, 16]
    onnxfile.write(tmp_path / "o.onnx", model.SerializeToString(), info)
    with pytest.raises(ModelError, match="not as described"):
        Runtime(tmp_path / "o.onnx").predict(np.zeros((5, 5, 3), np.uint8))
