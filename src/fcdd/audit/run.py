"""All questions in order, and the files of their answers."""

from __future__ import annotations

import io
import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from PIL import Image

from fcdd import folders, images
from fcdd.detector.detector import Detector
from fcdd.errors import DataError, ModelError
from fcdd.files import utf8, write_atomically

from . import cues, faithfulness, fields, heat, metadata, recurring, strategies
from .chance import FEWEST
from .evidence import Evidence, gather
from .findings import Audit, Finding, Severity, ranked
from .page import page

QUESTIONS: tuple[Callable[[Evidence, bool], list[Finding]], ...] = (
    recurring.answer,
    cues.answer,
    heat.answer,
    strategies.answer,
    metadata.answer,
    faithfulness.answer,
)


def audit(model: Path, parts: Path, *, skip_bad: bool = False, quiet: bool = True) -> Audit:
    """Ask a saved detector what its scores rest on.

    Args:
        model: a .safetensors file; ModelError for an exported one.
        parts: images in any layout with labels, or a folder of good ones; DataError for fewer than `FEWEST` good.
        skip_bad: leave unreadable images out instead of stopping at the first.
        quiet: show no progress.
    """
    begun = time.monotonic()
    if model.suffix == ".onnx":
        raise ModelError(f"{model}: an exported model does not show its features; audit the .safetensors it came from")
    evidence = gather(Detector.load(model), read_parts(parts, skip_bad), quiet)
    if len(evidence.good) < FEWEST:
        raise DataError(f"{parts}: {len(evidence.good)} good images, an audit needs at least {FEWEST}.")
    found = [finding for question in QUESTIONS for finding in question(evidence, quiet)]
    found += fields.answer(evidence, [finding for finding in found if finding.severity is not Severity.NONE])
    scores = {str(path): float(s) for path, s in zip(evidence.paths, evidence.scores, strict=True)}
    return Audit(str(model), str(parts), dict(Counter(evidence.kinds)), scores, ranked(found), time.monotonic() - begun)


def read_parts(parts: Path, skip_bad: bool = False) -> folders.Labelled:
    """Labelled images as `fcdd evaluate` reads them; a folder without good/ counts as good images only.

    With `skip_bad`, unreadable images are left out.
    """
    if (parts / "good").is_dir() or (parts / "test" / "good").is_dir():
        return folders.read_test(parts, skip_bad=skip_bad)
    found = folders.read_folder(parts, skip_bad=skip_bad).good if images.find(parts) else []
    if not found:
        raise DataError(f"{parts}: no images in it. Give the folder that holds good/ and defects/, or good images.")
    return folders.Labelled(list(found), [0] * len(found), ["good"] * len(found), [None] * len(found))


def write(result: Audit, output: Path) -> Path:
    """Write the page to `output`, the findings and, where one is offered, the region of interest beside it.

    Returns:
        The path of the findings.
    """
    findings = output.with_suffix(".json")
    if result.region is not None:
        mask = io.BytesIO()
        Image.fromarray(result.region).save(mask, "PNG")
        write_atomically(region_beside(output), mask.getvalue())
    write_atomically(output, utf8(page(result)))
    write_atomically(findings, json.dumps(result.to_dict(), indent=1).encode())
    return findings


def region_beside(output: Path) -> Path:
    """Where the region of interest that an audit offers lies: beside its page `output`."""
    return output.with_suffix(".roi.png")
