"""What a report shows: the items with their thumbnails, and the numbers around them."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from PIL import Image

from fcdd.detector.calibration import Limits, Verdict
from fcdd.metrics import Ranking
from fcdd.regions import Region

Array = npt.NDArray[Any]
THUMBNAIL = 160  # longest side in pixels: 2,000 images stay below some 25 MB
VIEWS = ("input", "heatmap", "overlay", "truth")
CAVEATS = (
    "Each cell of the heatmap sees only a small patch of the image, its receptive field. Scratches, stains, dents and "
    "foreign material are found; logical anomalies (a part that is missing, swapped or miscounted but looks normal up "
    "close) are not.",
    "A heatmap is as coarse as its receptive field: trust where a region is, not its exact outline.",
    "Scores and limits hold for the camera, lighting and parts of the calibration images. Calibrate "
    "again when any of them changes.",
)


def mistake(label: int | None, verdict: Verdict | None) -> str:
    """What a wrong verdict is called; empty where it is right, open (REVIEW) or not known to be wrong."""
    if label == 1 and verdict is Verdict.OK:
        return "defect passed"
    return "good part rejected" if label == 0 and verdict is Verdict.NG else ""


@dataclass(frozen=True)
class Card:
    """One statistic, with a sentence that says what it means."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Item:
    """One image with its verdict. It holds encoded thumbnails only, so thousands fit in memory."""

    name: str
    kind: str  # class or defect type
    label: int | None  # 0 nominal, 1 anomalous, None unknown
    score: float
    p_value: float | None
    verdict: Verdict | None
    size: tuple[int, int]  # width and height of the image itself, the frame of the regions
    thumbnails: Mapping[str, str]  # some of VIEWS → data URI
    regions: Sequence[Region] = ()

    def __post_init__(self) -> None:
        if not math.isfinite(self.score) or self.label not in (None, 0, 1):
            raise ValueError(
                f"{self.name}: needs a finite score and label 0, 1 or None, got {self.score}, {self.label}"
            )

    @classmethod
    def of(
        cls,
        name: str,
        score: float,
        image: Array,
        *,
        kind: str = "",
        label: int | None = None,
        p_value: float | None = None,
        verdict: Verdict | None = None,
        heatmap: Array | None = None,
        overlay: Array | None = None,
        truth: Array | None = None,
        regions: Sequence[Region] = (),
        side: int = THUMBNAIL,
    ) -> Self:
        """From arrays at any size: RGB uint8 (H, W, 3), or for `truth` a bool mask (H, W)."""
        views = zip(VIEWS, (image, heatmap, overlay, truth), strict=True)
        thumbnails = {view: thumbnail(array, side) for view, array in views if array is not None}
        size = (image.shape[1], image.shape[0])
        return cls(name, kind, label, float(score), p_value, verdict, size, thumbnails, tuple(regions))


@dataclass(frozen=True)
class ReportData:
    """Everything `render` needs. Counts, image metrics, curves and the table by type are derived from the items."""

    title: str
    subtitle: str
    items: Sequence[Item]
    limits: Limits | None = None  # `Calibration.limits`
    cards: Sequence[Card] = ()  # further statistics, for example AUPRO
    pixel: Ranking | None = None  # `PixelHistogram.ranking()`
    guarantee: str = ""  # `Calibration.promise`
    false_rejects: float | None = None  # share of good parts that are rejected on average, where it is promised
    model_card: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # section → name → value
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()  # what makes the verdicts less sure; shown above them
    caveats: Sequence[str] = CAVEATS


def to_image(array: Array) -> Image.Image:
    """RGB or grey uint8, or a bool mask (white on black), as a Pillow image in RGB."""
    if array.dtype == np.bool_:
        array = array.astype(np.uint8) * np.uint8(255)
    if array.dtype != np.uint8 or array.ndim not in (2, 3):
        raise ValueError(f"an image is uint8 (H, W, 3), uint8 (H, W) or bool (H, W), got {array.dtype} {array.shape}")
    return Image.fromarray(array).convert("RGB")


def thumbnail(array: Array, side: int = THUMBNAIL) -> str:
    """A data URI of at most `side` pixels: JPEG, which encodes ten times faster than WebP, or PNG for masks."""
    small, buffer = to_image(array), io.BytesIO()
    small.thumbnail((side, side), Image.Resampling.BILINEAR)
    if array.dtype == np.bool_:
        small.convert("L").convert("1", dither=Image.Dither.NONE).save(buffer, "PNG")
        return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
    small.save(buffer, "JPEG", quality=75, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
