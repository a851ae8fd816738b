"""Detector → one ONNX file, written only where both give the same answers; or smaller, at a loss that is measured."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from fcdd import images, metrics
from fcdd.anomalies import synthetic
from fcdd.detector import graph, onnxfile
from fcdd.detector.detector import Detector
from fcdd.detector.judge import Judge
from fcdd.detector.precision import half, quantised
from fcdd.detector.runtime import INPUT, OUTPUTS, Runtime, rows_of, session
from fcdd.errors import DataError, ModelError
from fcdd.nn.compiled import by_torch
from fcdd.progress import bar
from fcdd.reading import ImageLike, pixels
from fcdd.seeds import generator_of

Array = NDArray[np.uint8]
Precision = Literal["fp32", "fp16", "int8"]
PRECISIONS: tuple[Precision, ...] = ("fp32", "fp16", "int8")
SCORE, HEATMAP = 1e-4, 1e-3  # largest difference: relative, and of a heatmap's range
AUROC_LOSS = 0.01  # largest that a smaller file may cost, on images and on pixels
MOST = 64  # images that are compared
DEFECTED = 16  # of them that are also compared with a synthetic defect, and at other sizes


@dataclass(frozen=True)
class Parity:
    """How far the exported model's answers lie from the detector's, at most, on `images` images."""

    source: str  # what the images were
    images: int
    score: float  # relative
    heatmap: float  # of the heatmap's range
    verdicts: int  # how many differ

    @property
    def holds(self) -> bool:
        return self.score <= SCORE and self.heatmap <= HEATMAP and self.verdicts == 0

    def __str__(self) -> str:
        return (
            f"scores differ by up to {self.score:.1e} (allowed {SCORE:g}), heatmaps by {self.heatmap:.1e} of their "
            f"range (allowed {HEATMAP:g}), {self.verdicts} of {self.images} verdicts differ ({self.source})"
        )


@dataclass(frozen=True)
class Loss:
    """What a smaller file costs: AUROC of good images against the same with synthetic defects."""

    images: int
    defects: int
    image_auroc: float
    image_loss: float
    pixel_auroc: float
    pixel_loss: float

    @property
    def bearable(self) -> bool:
        return max(self.image_loss, self.pixel_loss) <= AUROC_LOSS

    def __str__(self) -> str:
        return (
            f"image AUROC {self.image_auroc:.4f} (loss {self.image_loss:+.4f}), pixel AUROC {self.pixel_auroc:.4f} "
            f"(loss {self.pixel_loss:+.4f}) on {self.images} good images and {self.defects} synthetic defects; "
            f"a loss of {AUROC_LOSS:g} is allowed"
        )


def export(
    detector: Detector,
    path: Path | str,
    given: Sequence[ImageLike] | None = None,
    precision: Precision = "fp32",
    *,
    quiet: bool = True,
) -> tuple[Runtime, Parity | Loss]:
    """Write `detector` to `path`; what `Runtime(path)` gives, and what was measured. ModelError where answers differ
    too much.

    `images` are good ones, best the folder that was trained on: those of them that were held out are compared. In
    single precision patterns made in code serve where there are none. Other precisions need images, because they
    change the scores: the thresholds are set anew from the held-out ones.
    """
    held = None if given is None else [image for image in given if not detector.trained_on(image)]
    if precision != "fp32" and not held:
        raise DataError(
            f"{precision} changes the scores, so thresholds are set anew: give good images (--images) of which some "
            "were not trained on, such as the folder that was trained on"
        )
    # Ranges of 8 bits come from trained-on images where there are some, so that calibration images stay unseen.
    trained = [image for image in given or [] if detector.trained_on(image)]
    content = _content(detector, precision, _some(trained or held or []))
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "draft.onnx"
        further: dict[str, Any] = {"inside": rows_of(detector.inside), "precision": precision, "parity": {}}
        onnxfile.write(draft, content, {**detector.info(), **further})
        runtime = Runtime(draft)
    measured: Parity | Loss
    if precision == "fp32":
        measured = compare(detector, runtime, *_probes(detector, held or given), quiet=quiet)
        if not measured.holds:
            raise ModelError(f"{path}: not written, the exported model answers differently: {measured}")
    else:
        assert held
        measured = measure_loss(detector, runtime, _some(held), quiet=quiet)
        if not measured.bearable:
            raise ModelError(f"{path}: not written, {precision} loses too much: {measured}. Use another precision")
        runtime.calibrate(held, quiet=quiet)
    runtime.parity = asdict(measured)
    runtime.save(path)
    return runtime, measured


def _content(detector: Detector, precision: Precision, usual: Sequence[ImageLike]) -> bytes:
    """The serialised graph; `usual` images tell the ranges of 8 bits where they are not known otherwise.

    In a description the distances take 8 bits, and the trunk keeps its digits: whitening blows up small errors of the
    features, and 8 bits made its convolutions hardly faster.
    """
    distances = precision == "int8" and graph.is_written(detector.network)
    model = graph.build(detector, eight=distances)
    if precision == "fp32" or distances:
        return bytes(model.SerializeToString())
    if precision == "fp16":
        return half(model)
    return quantised(model, [detector.input(pixels(image)) for image in usual])


def compare(detector: Detector, runtime: Runtime, arrays: Sequence[Array], source: str, quiet: bool = True) -> Parity:
    """The largest differences over `arrays`, of the runtime's answers and of the graph's own for the same images."""
    score = heat = 0.0
    verdicts = 0
    whole = session(runtime.graph, runtime.threads, "the graph")
    with stretching(detector), stretching(runtime), bar("comparing", len(arrays), quiet=quiet) as shown:
        for array in arrays:
            with by_torch():
                expected = detector.predict(array)
            found = runtime.predict(array)
            _, (own,), (map_,) = whole.run(OUTPUTS, {INPUT: array[None]})
            span = float(np.ptp(expected.heatmap))
            for value, heatmap in ((found.score, found.heatmap), (float(own), map_)):
                score = max(score, abs(value - expected.score) / max(abs(expected.score), 1e-12))
                # A flat map has no range of its own; its rounding errors are measured by its height.
                heat = max(heat, float(np.abs(heatmap - expected.heatmap).max()) / max(span, 0.01 * expected.score))
                verdicts += runtime.calibration.verdict(value) != expected.verdict
            shown.advance(1)
    return Parity(source, len(arrays), score, heat, verdicts)


@contextmanager
def stretching(judge: Judge) -> Iterator[None]:
    """Images of any aspect are stretched in the block, as the graph does by itself."""
    before, judge.framing = judge.framing, "stretch"
    try:
        yield
    finally:
        judge.framing = before


def measure_loss(detector: Detector, runtime: Runtime, good: Sequence[ImageLike], quiet: bool = True) -> Loss:
    """AUROC of both models on good images against synthetic defects on the same, where they look."""
    arrays = [detector.input(pixels(image)) for image in good]
    bad, masks = _defected(detector, arrays * -(-MOST // len(arrays)))
    truths = [np.zeros(masks[0].shape, np.bool_)] * len(arrays) + masks
    labels = [0] * len(arrays) + [1] * len(bad)
    figures, looked_at = [], _region(detector)
    with bar("measuring the loss", 2 * len(labels), quiet=quiet) as shown:
        for judge in (detector, runtime):
            histogram, scores = metrics.PixelHistogram(), []
            for (_, result), truth in zip(judge.inspect([*arrays, *bad]), truths, strict=True):
                histogram.update(result.heatmap[looked_at], truth[looked_at])
                scores.append(result.score)
                shown.advance(1)
            figures.append((metrics.auroc(scores, labels), histogram.auroc()))
    (image, pixel), (image_found, pixel_found) = figures
    return Loss(len(arrays), len(bad), image_found, image - image_found, pixel_found, pixel - pixel_found)


def _probes(detector: Detector, given: Sequence[ImageLike] | None) -> tuple[list[Array], str]:
    """Images to compare on, and what they are: as they come, with synthetic defects, and at other sizes."""
    if given:
        arrays = [pixels(image) for image in _some(given)]
        source = "calibration images"
    else:
        arrays, source = _patterns(detector), "patterns made in code"
    few = arrays[:DEFECTED]
    bad, _ = _defected(detector, [images.resize(array, detector.grid.shape) for array in few])
    factors = np.linspace(0.4, 2.2, len(few))
    other = [
        images.resize(array, (max(1, int(array.shape[0] * f)), max(1, int(array.shape[1] * (2.6 - f)))))
        for array, f in zip(few, factors, strict=True)
    ]
    return [*arrays, *bad, *other], f"{source}, {len(bad)} with synthetic defects, {len(other)} at other sizes"


def _defected(detector: Detector, arrays: Sequence[Array]) -> tuple[list[Array], list[NDArray[np.bool_]]]:
    """Synthetic defects inside the region of interest on images of the input's shape, and their masks."""
    clean = torch.from_numpy(np.stack(arrays)).permute(0, 3, 1, 2).float() / 255
    inside = torch.from_numpy(_region(detector))[None, None]
    bad, masks = synthetic.mixture(
        clean, generator_of(detector.seed, "export"), foreground=inside.expand(len(clean), 1, -1, -1)
    )
    bad, masks = torch.where(inside, bad, clean), masks.bool() & inside
    spoilt = (bad * 255).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous().numpy()
    seen = [(one, mask[0].numpy()) for one, mask in zip(spoilt, masks, strict=True) if mask.any()]
    return [one for one, _ in seen], [mask for _, mask in seen]


def _region(detector: Detector) -> NDArray[np.bool_]:
    """The region of interest on the pixels of the input, (H, W): what lies outside of it has no heat."""
    stride = detector.grid.stride
    cells = detector.inside.repeat(stride, 0).repeat(stride, 1)
    missing = [side - have for side, have in zip(detector.grid.shape, cells.shape, strict=True)]
    return np.pad(cells, [(0, more) for more in missing], "edge")


def _patterns(detector: Detector) -> list[Array]:
    """Smooth noise of every coarseness, about as bright as the good images."""
    generator = generator_of(detector.seed, "patterns")
    height, width = detector.grid.shape
    level = detector.network.level.view(3, 1, 1)
    made = []
    for coarseness in np.geomspace(2, min(height, width), DEFECTED):
        grid = torch.randn(1, 3, max(2, int(height / coarseness)), max(2, int(width / coarseness)), generator=generator)
        smooth = torch.nn.functional.interpolate(grid, (height, width), mode="bicubic")[0]
        made.append((level + 30 * smooth).clamp(0, 255).round().to(torch.uint8).permute(1, 2, 0).contiguous().numpy())
    return made


def _some(given: Sequence[ImageLike]) -> list[ImageLike]:
    """At most `MOST`, evenly taken."""
    return list(given[:: max(1, -(-len(given) // MOST))])
