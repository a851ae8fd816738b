"""The detector: from cells to score, verdict and explanation; calibration; the ONNX twin and its export.

`Detector` needs torch and is imported when it is asked for: an exported model runs without it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fcdd.errors import FcddError
from fcdd.framing import Fit

if TYPE_CHECKING:
    from fcdd.detector.detector import Detector
    from fcdd.detector.judge import Judge

__all__ = ["Detector", "load"]


def __getattr__(name: str) -> Any:
    if name == "Detector":
        from fcdd.detector.detector import Detector

        return Detector
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load(path: Path | str, threads: int = 0, framing: Fit | None = None) -> Judge:
    """A saved model: an exported one by its suffix, else a detector, for which torch must be installed.

    `framing` replaces what the model says of images of another aspect than trained.
    """
    judge = _loaded(Path(path), threads)
    judge.framing = framing or judge.framing
    return judge


def _loaded(path: Path, threads: int) -> Judge:
    if path.suffix == ".onnx":
        from fcdd.detector.runtime import Runtime

        return Runtime(path, threads=threads)
    try:
        import torch
    except ImportError:
        raise FcddError(
            f"{path}: needs torch, which is not installed. Use an exported model (fcdd export, .onnx), "
            "or pip install 'fcdd[train]'"
        ) from None
    from fcdd.detector.detector import Detector

    if threads:
        torch.set_num_threads(threads)
    return Detector.load(path)
