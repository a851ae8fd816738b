"""The errors a user may meet. Each says what is wrong, where, and what to do about it."""

from __future__ import annotations

from pathlib import Path


class FcddError(Exception):
    """Base of every error that is the input's fault, not the program's."""


class ImageError(FcddError):
    """An image or mask that cannot be used; `source` names the file."""

    def __init__(self, source: str | Path, reason: str, remedy: str = "") -> None:
        self.source, self.reason, self.remedy = str(source), reason, remedy
        super().__init__(f"{source}: {reason}" + (f". {remedy}" if remedy else ""))


class DataError(FcddError):
    """A dataset that is missing, damaged or unfit for what was asked."""


class OutputError(FcddError):
    """An output that cannot be written, must not be written over, or is being written by another process."""


class RecipeError(FcddError):
    """A recipe with an unknown key, a value of the wrong type, or values that contradict each other."""


class ModelError(FcddError):
    """A model or checkpoint file that is missing, damaged, tampered with, too new or of another kind."""


class CalibrationError(FcddError):
    """Calibration scores that are damaged, or too few for what was asked."""
