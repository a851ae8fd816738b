"""What the server answers, as the OpenAPI schema describes it."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import BaseModel, Field

from fcdd import images
from fcdd.detector.calibration import Verdict
from fcdd.detector.result import Result
from fcdd.detector.runtime import Runtime
from fcdd.report.colours import colour, opacity
from fcdd.report.inspection import heat

LONGEST_SIDE = 1024  # of a heatmap as PNG: heat is smooth, and a larger one shows nothing more
LEVELS = np.linspace(0, 1, 256)
PALETTE = colour(LEVELS[None])[0]
OPACITY = np.rint(255 * opacity(np.where(np.arange(256) > 128, LEVELS, 0))).astype(np.uint8).tobytes()  # 0.5 is 128


class HeatmapKind(StrEnum):
    """none; png: colours over the image; json: the cells, whose strongest hundredth is the score."""

    NONE = "none"
    PNG = "png"
    JSON = "json"


class Region(BaseModel):
    """A part of the image that accounts for its verdict, in pixels of the image."""

    x: int
    y: int
    width: int
    height: int
    area: int = Field(description="pixels")
    peak: float = Field(description="largest heat inside")
    share: float = Field(description="of the whole image's heat, 0 to 1")


class Heatmap(BaseModel):
    """PNG: one byte a pixel, the heat from 0 (usual) over 128 (the outline) to 255; its palette gives colour and
    opacity over the image.
    JSON: the cells A(X), row by row."""

    kind: HeatmapKind
    width: int
    height: int
    png: str | None = Field(default=None, description="base64", json_schema_extra={"contentEncoding": "base64"})
    values: list[list[float]] | None = None


class Prediction(BaseModel):
    """The verdict on one image."""

    model: str
    name: str | None = Field(description="what the client called the image")
    width: int
    height: int
    score: float = Field(description="higher is more anomalous")
    p_value: float = Field(description="share of good parts that score this high")
    verdict: Verdict
    regions: list[Region] = Field(description="at least one, unless the verdict is OK")
    level: float = Field(description="heat above which a pixel belongs to a region of this image")
    heatmap: Heatmap | None
    warning: str | None = Field(
        default=None, description="how light, sharpness or scale of the last images differ from the calibration images"
    )


class Problem(BaseModel):
    """Why there is no answer (RFC 9457)."""

    status: int
    title: str
    detail: str


class Judged(BaseModel):
    """One image of a batch: a prediction, or why there is none."""

    prediction: Prediction | None = None
    problem: Problem | None = None


class Predictions(BaseModel):
    """The images of a batch, in the order of the request."""

    results: list[Judged]


class Guarantee(BaseModel):
    """What the reject level promises."""

    level: float
    expected: float
    low: float
    high: float
    sentence: str


class ModelSummary(BaseModel):
    """A model that is being served."""

    name: str
    width: int = Field(description="of the network's input")
    height: int
    precision: str
    calibration_images: int


class ModelDetail(ModelSummary):
    """All that a client may know of a model; the scores of good parts show what a threshold would do."""

    calibration_scores: list[float] = Field(description="of good parts that were not trained on, ascending")
    reject_level: float
    review_level: float
    reject_above: float = Field(description="score above which a part is rejected")
    review_above: float = Field(description="score above which a part goes to review")
    guarantee: Guarantee | None = Field(description="none where the threshold was set by hand or from defects")
    promise: str = Field(description="what the reject threshold does to good parts, and to defects where known")
    pixel_threshold: float = Field(description="the same as review_above; each image's outline has a level of its own")
    card: dict[str, Any]


class ModelList(BaseModel):
    models: list[ModelSummary]


@dataclass(frozen=True)
class Seen:
    """What the network saw of one image: its cells A (h, w), and the (H, W) of the image as it was sent."""

    cells: NDArray[np.float32]
    size: tuple[int, int]


def prediction(model: str, runtime: Runtime, name: str | None, seen: Seen, kind: HeatmapKind) -> Prediction:
    """The answer on one image. For a moment it takes some 16 bytes for each of the image's pixels."""
    result = runtime.judge(seen.cells, seen.size)
    height, width = seen.size
    drawn = None
    if kind is HeatmapKind.PNG:
        drawn = _png(runtime, result)
    elif kind is HeatmapKind.JSON:
        drawn = _cells(result)
    return Prediction(
        **result.to_dict(),
        level=result.level,
        model=model,
        name=name,
        width=width,
        height=height,
        heatmap=drawn,
    )


def _cells(result: Result) -> Heatmap:
    height, width = result.cells.shape
    values = np.round(result.cells.astype(np.float64), 6).tolist()
    return Heatmap(kind=HeatmapKind.JSON, width=width, height=height, values=values)


def _png(runtime: Runtime, result: Result) -> Heatmap:
    levels = np.rint(255 * heat(runtime, result)).astype(np.uint8)
    height, width = levels.shape
    shrink = max(height, width) / LONGEST_SIDE
    if shrink > 1:
        levels = images.resize(levels, (max(round(height / shrink), 1), max(round(width / shrink), 1)))
    image = Image.fromarray(levels)
    image.putpalette(PALETTE.tobytes())
    stream = io.BytesIO()
    image.save(stream, "PNG", transparency=OPACITY, compress_level=3)
    encoded = base64.b64encode(stream.getvalue()).decode()
    return Heatmap(kind=HeatmapKind.PNG, width=levels.shape[1], height=levels.shape[0], png=encoded)


def summary(name: str, runtime: Runtime) -> ModelSummary:
    height, width = runtime.grid.shape
    images_held = len(runtime.calibration.scores)
    return ModelSummary(
        name=name, width=width, height=height, precision=runtime.precision, calibration_images=images_held
    )


def detail(name: str, runtime: Runtime) -> ModelDetail:
    calibration = runtime.calibration
    limits, promise = calibration.limits, calibration.guarantee(calibration.reject)
    return ModelDetail(
        **summary(name, runtime).model_dump(),
        calibration_scores=list(calibration.scores),
        reject_level=calibration.reject,
        review_level=calibration.review,
        reject_above=limits.reject,
        review_above=limits.review,
        guarantee=None
        if calibration.reject_above is not None
        else Guarantee(
            level=promise.level,
            expected=promise.expected,
            low=promise.low,
            high=promise.high,
            sentence=str(promise),
        ),
        promise=calibration.promise,
        pixel_threshold=limits.review,
        card={key: value for key, value in runtime.card.items() if key != "trained"},
    )
