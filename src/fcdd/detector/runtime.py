"""`Runtime`: the exported model, with numpy, Pillow and onnxruntime alone; the same words and results as `Detector`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fcdd.detector import onnxfile
from fcdd.detector.info import RUNTIME, described
from fcdd.detector.judge import Judge
from fcdd.detector.result import Grid
from fcdd.detector.settings import Settings
from fcdd.errors import FcddError, ModelError

Backend = Literal["onnxruntime", "openvino"]
Cells = Callable[[NDArray[np.uint8]], NDArray[np.float32]]
INPUT = "image"  # names in the graph
OUTPUTS = CELLS, SCORE, HEATMAP = "cells", "score", "heatmap"


class Runtime(Judge):
    """An exported detector.

    >>> runtime = Runtime("part.onnx")
    >>> result = runtime.predict("incoming/7.png")
    >>> result.verdict, result.score, result.p_value, result.regions
    """

    def __init__(self, path: Path | str, *, threads: int = 0, backend: Backend = "onnxruntime") -> None:
        """Check the file and load it; ModelError where it is damaged, changed, of another kind or too new.

        `threads` 0 takes all cores. What runs are the very bytes that were checked.
        """
        self.graph, info = onnxfile.read(Path(path))
        with described(path, info, RUNTIME):
            super().__init__(Settings.from_dict(info["settings"]), info["seed"])
            self._grid = Grid.from_dict(info["grid"])
            self._inside = np.array([[cell == "1" for cell in row] for row in info["inside"]], np.bool_)
            if self._inside.shape != self._grid.cells or not self._inside.any():
                raise ModelError(f"{path}: inside must be {self._grid.cells} cells, at least one of them 1")
            self._remember(info)
        self.precision: str = info["precision"]
        self.parity: dict[str, Any] = info["parity"]
        self.threads = threads or os.cpu_count() or 1
        if backend not in BACKENDS:
            raise FcddError(f"no backend {backend!r}; there are {', '.join(BACKENDS)}")
        self._run = BACKENDS[backend](self.graph, self.grid.shape, self.threads, str(path))

    def save(self, path: Path | str) -> None:
        """The same graph with the calibration as it is now."""
        onnxfile.write(Path(path), self.graph, self.info())

    def info(self) -> dict[str, Any]:
        return {**super().info(), "inside": rows_of(self.inside), "precision": self.precision, "parity": self.parity}

    def _cells(self, inputs: NDArray[np.uint8]) -> NDArray[np.float32]:
        cells = self._run(inputs)
        if cells.shape != (len(inputs), *self.grid.cells) or not np.isfinite(cells).all():
            raise ModelError(f"the graph gives cells {cells.shape} that are not as described; export the model again")
        return cells

    @contextmanager
    def _workers(self) -> Iterator[int]:
        yield self.threads


def rows_of(inside: NDArray[np.bool_]) -> list[str]:
    """The cells inside the region of interest as rows of 0 and 1, for JSON."""
    return ["".join("01"[cell] for cell in row) for row in inside.astype(int)]


def session(graph: bytes, threads: int, name: str) -> Any:
    """An onnxruntime session; ModelError where the graph cannot be loaded."""
    # A line PC should not have a device id written and kept for it.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    # Threads that wait by spinning take the cores from decoding, from torch and from everything else on the line's PC.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own types are not exported
        raise ModelError(f"{name}: onnxruntime cannot load it ({str(error).splitlines()[0]})") from None


def _onnxruntime(graph: bytes, _: tuple[int, int], threads: int, name: str) -> Cells:
    import onnxruntime

    loaded = session(graph, threads, name)
    if INPUT not in {one.name for one in loaded.get_inputs()} or CELLS not in {o.name for o in loaded.get_outputs()}:
        raise ModelError(f"{name}: its graph does not lead from {INPUT} to {CELLS}; it was not made by fcdd export")
    # Else it would also compute the heatmap, at the size of the network's input.
    run = onnxruntime.RunOptions()
    run.only_execute_path_to_fetches = True

    def cells(inputs: NDArray[np.uint8]) -> NDArray[np.float32]:
        found: NDArray[np.float32] = loaded.run([CELLS], {INPUT: inputs}, run)[0]
        return found

    return cells


def _openvino(graph: bytes, shape: tuple[int, int], threads: int, name: str) -> Cells:
    try:
        import openvino
    except ImportError:
        raise FcddError("the backend openvino is not installed: pip install openvino") from None

    core = openvino.Core()
    model = core.read_model(graph)
    outputs = [output for output in model.outputs if CELLS in output.get_names()]
    model = openvino.Model([output.get_node() for output in outputs], model.get_parameters(), "cells")
    model.reshape({INPUT: [-1, *shape, 3]})  # known sizes let it drop the branch that resizes
    precise = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
    compiled = core.compile_model(model, "CPU", precise)

    def cells(inputs: NDArray[np.uint8]) -> NDArray[np.float32]:
        # A request of its own for every call: they may come from several threads.
        return np.array(compiled.create_infer_request().infer({INPUT: inputs})[0], np.float32)

    return cells


BACKENDS: dict[str, Callable[[bytes, tuple[int, int], int, str], Cells]] = {
    "onnxruntime": _onnxruntime,
    "openvino": _openvino,
}
