"""A cue: what images of one class share and what must not count, a watermark say; and images that carry it."""

from __future__ import annotations

import base64
import binascii
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from fcdd import images
from fcdd.data import Source
from fcdd.errors import DataError, ImageError
from fcdd.seeds import generator_of

SHARE = 0.5  # of the images that get a cue when it is made to mean nothing
FADE = 4  # pixels over which a pasted patch fades into the image
PASTE, EXCLUDE = "paste", "exclude"  # the two ways of mending
WHOLE = 1024  # side of a region of interest that nothing else gives a size
_URI = "data:image/png;base64,"


@dataclass(frozen=True)
class Cue:
    """Where the cue lies and what it looks like there.

    `place` is (left, top, right, bottom) in fractions of the image's width and height; `patches`, RGB uint8, are the
    place cut from images that carry the cue. `mend` says how training is to forget it: "paste" puts patches into
    images of both classes, "exclude" leaves the place out of the region of interest.
    """

    place: tuple[float, float, float, float]
    patches: tuple[NDArray[np.uint8], ...]
    mend: str = PASTE

    def box(self, shape: tuple[int, int]) -> tuple[slice, slice]:
        """Rows and columns of the place in an image of `shape` (H, W), at least one pixel each."""
        left, top, right, bottom = self.place
        rows, columns = (
            slice(min(round(a * n), n - 1), max(round(b * n), min(round(a * n), n - 1) + 1))
            for a, b, n in ((top, bottom, shape[0]), (left, right, shape[1]))
        )
        return rows, columns

    def mask(self, shape: tuple[int, int]) -> NDArray[np.bool_]:
        """True (H, W) within the place."""
        mask = np.zeros(shape, np.bool_)
        mask[self.box(shape)] = True
        return mask

    def paste(self, image: NDArray[np.uint8], which: int) -> NDArray[np.uint8]:
        """RGB (H, W, 3) with patch `which` (counted around) at the place."""
        box = self.box((image.shape[0], image.shape[1]))
        return blend(image, self.patches[which % len(self.patches)], box)

    def to_dict(self) -> dict[str, Any]:
        return {"place": list(self.place), "mend": self.mend, "patches": [_encoded(patch) for patch in self.patches]}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Cue:
        left, top, right, bottom = (float(value) for value in values["place"])
        if not (0 <= left < right <= 1 and 0 <= top < bottom <= 1) or values["mend"] not in (PASTE, EXCLUDE):
            raise ValueError("a place is left < right and top < bottom in [0, 1], mend is paste or exclude")
        patches = tuple(images.load(base64.b64decode(p.removeprefix(_URI), validate=True)) for p in values["patches"])
        if not patches:
            raise ValueError("a cue needs at least one patch")
        return cls((left, top, right, bottom), patches, values["mend"])


def blend(
    image: NDArray[np.uint8], patch: NDArray[np.uint8], box: tuple[slice, slice], fade: int = FADE
) -> NDArray[np.uint8]:
    """RGB (H, W, 3) with `patch`, resized to `box`, over it; it fades out over `fade` pixels, save at the border.

    A hard edge would be a mark of its own.
    """
    height, width = (part.stop - part.start for part in box)
    fitted = patch if patch.shape[:2] == (height, width) else images.resize(patch, (height, width))
    rows, columns = (
        np.minimum(
            1.0 if part.start == 0 else (np.arange(side) + 1) / (fade + 1),
            1.0 if part.stop == whole else (side - np.arange(side)) / (fade + 1),
        ).clip(0, 1)
        for part, side, whole in zip(box, (height, width), image.shape, strict=False)
    )
    alpha = np.minimum(np.broadcast_to(rows, height)[:, None], np.broadcast_to(columns, width))[..., None]
    result = image.copy()
    result[box] = np.round(alpha * fitted + (1 - alpha) * image[box])
    return result


class Marked:
    """A `Source` half of whose images carry one of `cues`; which ones depends on `seed` and their index alone."""

    def __init__(self, source: Source, cues: Sequence[Cue], seed: int) -> None:
        self.source, self.cues, self.seed = source, cues, seed

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, indices: Tensor, /) -> Tensor:
        given = self.source[indices]
        for n, index in enumerate(indices.tolist()):
            generator = generator_of(self.seed, "cue", index)
            if torch.rand(1, generator=generator) < SHARE:
                chosen, which = torch.randint(1 << 30, (2,), generator=generator).tolist()
                marked = self.cues[chosen % len(self.cues)].paste(given[n].permute(1, 2, 0).numpy(), which)
                given[n] = torch.from_numpy(marked).permute(2, 0, 1)
        return given


def outside(cues: Sequence[Cue], region: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    """The region of interest (H, W), None for everything, without the places of the cues that are to be excluded."""
    for cue in cues:
        if cue.mend == EXCLUDE:
            region = np.ones((WHOLE, WHOLE), np.bool_) if region is None else region
            region = region & ~cue.mask(region.shape)
    return region


def read(path: Path) -> list[Cue]:
    """The cues of an audit's findings; a finding that was deleted from the file is not mended."""
    try:
        findings = json.loads(path.read_text(encoding="utf-8"))["findings"]
        cues = [Cue.from_dict(finding["cue"]) for finding in findings if finding.get("cue")]
    except FileNotFoundError:
        raise DataError(f"{path}: no such file. Give the JSON file that `fcdd audit` wrote.") from None
    except (OSError, ValueError, KeyError, TypeError, binascii.Error, ImageError) as error:
        raise DataError(f"{path}: not the findings of `fcdd audit` ({error}). Run the audit again.") from None
    if not cues:
        raise DataError(f"{path}: no finding in it has a cue to neutralise. Train without --neutralise.")
    return cues


def _encoded(patch: NDArray[np.uint8]) -> str:
    """A PNG: traces of lossy compression would be a cue of their own."""
    buffer = io.BytesIO()
    Image.fromarray(patch).save(buffer, "PNG")
    return _URI + base64.b64encode(buffer.getvalue()).decode("ascii")
