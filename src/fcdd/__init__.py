"""fcdd: fully convolutional data description, an anomaly detector whose score is its explanation.

`import fcdd` imports neither torch nor onnxruntime; each name is loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fcdd.detector import load
    from fcdd.detector.calibration import Verdict
    from fcdd.detector.detector import Detector
    from fcdd.detector.result import Result

__version__ = "0.1.0"
__all__ = ["Detector", "Result", "Verdict", "load"]

_HOMES = {
    "Detector": "detector.detector",
    "Result": "detector.result",
    "Verdict": "detector.calibration",
    "load": "detector",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"fcdd.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'fcdd' has no attribute {name!r}")
