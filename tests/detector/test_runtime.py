"""What only the runtime does: it runs nothing that it has not checked, from any number of threads."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from fcdd import images
from fcdd.detector import onnxfile
from fcdd.detector.runtime import Runtime
from fcdd.errors import FcddError, ModelError

from ..conftest import Deployed


def test_a_weight_changed_after_export_is_refused(deployed: Deployed, tmp_path: Path) -> None:
    model = onnx.load(deployed.onnx)
    weight = next(w for w in model.graph.initializer if w.name.startswith("trunk.weight"))
    changed = numpy_helper.to_array(weight).copy()
    changed[0, 0, 0, 0] += 1e-3
    weight.CopyFrom(numpy_helper.from_array(changed, weight.name))
    onnx.save(model, tmp_path / "changed.onnx")
    with pytest.raises(ModelError, match=r"changed\.onnx: its content does not match its checksum"):
        Runtime(tmp_path / "changed.onnx")


def test_a_raised_threshold_is_refused_too(deployed: Deployed, tmp_path: Path) -> None:
    content = deployed.onnx.read_bytes()
    assert content.count(b'\\"usual\\": 0.') == 1
    (tmp_path / "m.onnx").write_bytes(content.replace(b'\\"usual\\": 0.', b'\\"usual\\": 1.'))
    assert (tmp_path / "m.onnx").read_bytes() != content
    with pytest.raises(ModelError, match="does not match its checksum"):
        Runtime(tmp_path / "m.onnx")


def test_a_graph_that_cannot_run_is_a_typed_error(deployed: Deployed, tmp_path: Path) -> None:
    graph, info = onnxfile.read(deployed.onnx)
    model = onnx.load_from_string(graph)
    model.graph.node[0].op_type = "NoSuchOperator"
    onnxfile.write(tmp_path / "m.onnx", model.SerializeToString(), info)
    with pytest.raises(ModelError, match=r"m\.onnx: onnxruntime cannot load it"):
        Runtime(tmp_path / "m.onnx")


def test_an_unknown_backend_is_named(deployed: Deployed) -> None:
    with pytest.raises(FcddError, match="no backend 'cuda'; there are onnxruntime, openvino"):
        Runtime(deployed.onnx, backend="cuda")  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", ["onnxruntime", "openvino"])
def test_many_threads_may_ask_at_once(deployed: Deployed, backend: str) -> None:
    pytest.importorskip(backend, reason="an optional backend: pip install openvino")
    runtime = Runtime(deployed.onnx, threads=1, backend=backend)  # type: ignore[arg-type]
    arrays = [images.load(path) for path in images.find(deployed.plates / "test")]
    alone = [runtime.predict(array).score for array in arrays]
    with ThreadPoolExecutor(8) as pool:
        together = [result.score for result in pool.map(runtime.predict, arrays * 3)]
    assert together == pytest.approx(alone * 3, rel=1e-6)


def test_the_region_of_interest_is_kept(deployed: Deployed, tmp_path: Path) -> None:
    runtime = Runtime(deployed.onnx)
    assert runtime.inside.all()
    graph, info = onnxfile.read(deployed.onnx)
    rows = ["1" * 16] * 8 + ["0" * 16] * 8
    onnxfile.write(tmp_path / "half.onnx", graph, {**info, "inside": rows})
    result = Runtime(tmp_path / "half.onnx").predict(np.full((128, 128, 3), 90, np.uint8))
    assert (result.cells[8:] == 0).all()
    assert (result.cells[:8] > 0).all()


def test_it_does_without_torch_and_onnx(deployed: Deployed) -> None:
    code = (
        "import sys; sys.modules.update(torch=None, onnx=None, safetensors=None)\n"
        "from fcdd.detector.runtime import Runtime\n"
        f"print(Runtime({str(deployed.onnx)!r}).predict({str(images.find(deployed.plates / 'test')[0])!r}).score)"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert float(told) == pytest.approx(deployed.detector.predict(images.find(deployed.plates / "test")[0]).score, 1e-4)
