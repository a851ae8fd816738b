"""A frozen network in ONNX Runtime: the same products and convolutions two to four times as fast as in torch on a CPU.

Torch has no fast depthwise convolution for CPUs, makes a pass over memory for each activation, and its matrix products
leave half of what many processors can do unused. A network that is frozen needs no gradients, so it can run where all
that is better. The graph is written node by node, which takes milliseconds where tracing would take seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

OPSET = 18
IR_VERSION = 9
INPUT = "images"  # of every graph here: float (N, 3, H, W) in 0…255
MOST = 8  # sessions that are kept of one network: a shape of images and a number of threads need one each


class Graph:
    """An ONNX graph that grows at its end; every method takes and gives names of values.

    `eight` says that large products are taken of numbers of 8 bits, which processors with VNNI do three times as fast.
    """

    def __init__(self, eight: bool = False) -> None:
        self.eight = eight
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._zero, self._six = self.constant(np.float32(0)), self.constant(np.float32(6))

    def constant(self, value: Any, name: str = "constant") -> str:
        """A tensor or array, under a name that begins with `name`."""
        array = value.detach().numpy() if isinstance(value, Tensor) else np.asarray(value)
        unique = f"{name}_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array, order="C"), unique))
        return unique

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def rounded(self, x: str, low: float, high: float) -> tuple[str, str]:
        """x in steps of a 255th of low…high, and cut there; twice, for the product in 8 bits and for all else.

        ONNX Runtime joins with the product what nothing else needs.
        """
        scale = (high - low) / 255
        step = self.constant(np.float32(scale)), self.constant(np.uint8(np.clip(round(-low / scale), 0, 255)))
        whole = self.add("QuantizeLinear", x, *step)
        return self.add("DequantizeLinear", whole, *step), self.add("DequantizeLinear", whole, *step)

    def weights(self, matrix: Tensor) -> tuple[str, Tensor]:
        """A matrix (D, K) in 8 bits, and what is then computed with.

        With one scale for all: ONNX Runtime would not join one for each column with the product.
        """
        scale = matrix.abs().max().clamp_min(1e-12) / 127
        whole = (matrix / scale).round()
        steps = self.constant(scale), self.constant(np.int8(0))
        return self.add("DequantizeLinear", self.constant(whole.to(torch.int8)), *steps), whole * scale

    def convolve(self, x: str, conv: nn.Conv2d) -> str:
        weight = self.constant(conv.weight, "trunk.weight")
        bias = [] if conv.bias is None else [self.constant(conv.bias, "trunk.bias")]
        return self.add("Conv", x, weight, *bias, group=conv.groups, kernel_shape=conv.kernel_size, strides=conv.stride)

    def relu6(self, x: str) -> str:
        return self.add("Clip", x, self._zero, self._six)

    def pad(self, x: str, pads: tuple[int, int, int, int], reflect: bool) -> str:
        """`pads` at the left, right, top and bottom, as torch counts them."""
        if not any(pads):
            return x
        left, right, top, bottom = pads
        amounts = self.integers(0, 0, top, left, 0, 0, bottom, right)
        return self.add("Pad", x, amounts, mode="reflect" if reflect else "edge")

    def session(self, outputs: Sequence[str], threads: int) -> Run:
        """Images (N, 3, H, W) → the values named `outputs`."""
        graph = helper.make_graph(
            self.nodes,
            "network",
            [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["n", 3, "h", "w"])],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
            self.constants,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        # Threads that wait by spinning take the cores from decoding and from torch.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        made = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

        def run(images: Tensor) -> list[Tensor]:
            given = images.contiguous(memory_format=torch.contiguous_format).numpy()
            # One image at a time: what is computed of one still lies in the processor's cache when it is needed.
            found = [made.run(None, {INPUT: given[i : i + 1]}) for i in range(len(given))]
            return [torch.from_numpy(np.concatenate(values)) for values in zip(*found, strict=True)]

        return run


Run = Callable[[Tensor], list[Tensor]]
Written = Callable[[Graph, int, int], Sequence[str]]  # adds a network for images of a height and width; its outputs


class Sessions:
    """Graphs of one network, each made when it is first asked for, and anew when a tensor of the network has changed.

    A copy of the network begins without any: sessions cannot be copied.
    """

    def __init__(self) -> None:
        self._state: tuple[tuple[Tensor, int], ...] = ()
        self._made: dict[tuple[Any, ...], Run] = {}

    def run(self, what: str, written: Written, images: Tensor, tensors: Iterable[Tensor]) -> list[Tensor]:
        """The outputs of the graph called `what`, which depends on `tensors`, for images (N, 3, H, W)."""
        state = tuple((tensor, tensor._version) for tensor in tensors)
        if not _same(state, self._state):
            self._state, self._made = state, {}
        height, width = images.shape[2:]
        key = what, height, width, torch.get_num_threads()
        session = self._made.get(key)
        if session is None:
            graph = Graph()
            session = graph.session(written(graph, height, width), threads=key[3])
            while len(self._made) >= MOST:
                self._made.pop(next(iter(self._made)), None)
            self._made[key] = session
        return session(images)

    def __deepcopy__(self, _: dict[int, Any]) -> Sessions:
        return Sessions()

    def __reduce__(self) -> tuple[type[Sessions], tuple[()]]:
        return Sessions, ()


def _same(one: Sequence[tuple[Tensor, int]], other: Sequence[tuple[Tensor, int]]) -> bool:
    return len(one) == len(other) and all(a is b and m == n for (a, m), (b, n) in zip(one, other, strict=True))


_by_torch: ContextVar[bool] = ContextVar("by_torch", default=False)


@contextmanager
def by_torch() -> Iterator[None]:
    """Networks answer by torch in this thread while the context lasts: what their graphs are compared with."""
    token = _by_torch.set(True)
    try:
        yield
    finally:
        _by_torch.reset(token)


def runs_frozen(images: Tensor) -> bool:
    """Whether a network may answer for these images by its graph: on a CPU, without gradients, not being traced."""
    if _by_torch.get():
        return False
    return images.device.type == "cpu" and not (torch.is_grad_enabled() or torch.compiler.is_exporting())
