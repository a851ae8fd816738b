"""The ONNX file's own description, against the onnx package and against every kind of damage."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from fcdd.detector import onnxfile
from fcdd.errors import ModelError
from fcdd.modelfile import ENTRY

INFO = {"x": [1, 2.5], "text": "Prüfling"}


@pytest.fixture
def graph() -> bytes:
    """y = x + 1, with a metadata entry of somebody else's."""
    one = numpy_helper.from_array(np.ones(300, np.float32), "one")
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [300]) for name in ("x", "y")]
    body = helper.make_graph([helper.make_node("Add", ["x", "one"], ["y"])], "g", value[:1], value[1:], [one])
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    helper.set_model_props(model, {"author": "somebody"})
    return bytes(model.SerializeToString())


@pytest.fixture
def written(graph: bytes, tmp_path: Path) -> Path:
    onnxfile.write(tmp_path / "m.onnx", graph, INFO)
    return tmp_path / "m.onnx"


def test_what_is_written_is_read(written: Path, graph: bytes) -> None:
    assert onnxfile.read(written) == (graph, INFO)


def test_other_programs_read_the_same_file(written: Path) -> None:
    model = onnx.load(written)
    onnx.checker.check_model(model, full_check=True)
    entries = {entry.key: entry.value for entry in model.metadata_props}
    assert set(entries) == {"author", ENTRY}
    assert json.loads(json.loads(entries[ENTRY])["info"]) == INFO
    # Field order may change when another program saves it; what matters is in the file, byte for byte or not at all.
    model.metadata_props[1].CopyFrom(onnx.StringStringEntryProto(key=ENTRY, value=entries[ENTRY]))
    assert onnx.numpy_helper.to_array(model.graph.initializer[0]).sum() == 300


def test_a_changed_weight_is_refused(written: Path) -> None:
    model = onnx.load(written)
    values = numpy_helper.to_array(model.graph.initializer[0]).copy()
    values[7] = 1.0001
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(values, "one"))
    onnx.save(model, written)
    with pytest.raises(ModelError, match=r"m\.onnx: its content does not match its checksum"):
        onnxfile.read(written)


def test_any_flipped_bit_is_refused(written: Path) -> None:
    content = written.read_bytes()
    for at in range(0, len(content), 13):
        changed = bytearray(content)
        changed[at] ^= 1 << at % 8
        written.write_bytes(changed)
        with pytest.raises(ModelError, match=r"m\.onnx: "):
            onnxfile.read(written)


def test_a_truncated_file_is_refused(written: Path) -> None:
    content = written.read_bytes()
    for length in [*range(0, len(content), 29), len(content) - 1]:
        written.write_bytes(content[:length])
        with pytest.raises(ModelError, match=r"m\.onnx: "):
            onnxfile.read(written)


def test_what_it_is_not_is_said(written: Path, graph: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "foreign.onnx").write_bytes(graph)
    with pytest.raises(ModelError, match="not one of fcdd's"):
        onnxfile.read(tmp_path / "foreign.onnx")
    (tmp_path / "text.onnx").write_text("no model at all")
    with pytest.raises(ModelError, match="perhaps truncated"):
        onnxfile.read(tmp_path / "text.onnx")
    with pytest.raises(ModelError, match=r"absent\.onnx: cannot be read"):
        onnxfile.read(tmp_path / "absent.onnx")
    monkeypatch.setattr(onnxfile, "SCHEMA", 99)
    onnxfile.write(tmp_path / "newer.onnx", graph, INFO)
    with pytest.raises(ModelError, match=r"newer fcdd \(schema 99\); upgrade"):
        onnxfile.read(tmp_path / "newer.onnx")
