"""Heat as colour, for people to look at. Needs numpy alone: a line PC without torch draws the same images."""

from __future__ import annotations

import numpy as np

# Anchors of a perceptually ordered dark-to-bright scale: it still reads in grey and for colour-blind eyes.
_ANCHORS = np.array(
    [
        [0, 0, 4],
        [40, 11, 84],
        [101, 21, 110],
        [159, 42, 99],
        [212, 72, 66],
        [245, 125, 21],
        [250, 193, 39],
        [252, 255, 164],
    ],
    dtype=np.float32,
)
_STEPS = np.linspace(0, len(_ANCHORS) - 1, 2048)
_TABLE = np.stack([np.interp(_STEPS, np.arange(len(_ANCHORS)), _ANCHORS[:, c]) for c in range(3)], -1)
_TABLE = _TABLE.round().astype(np.uint8)  # of each of 2,048 levels of heat: finer than eight bits of colour
FAINTEST = 0.3  # opacity of the least heat that shows over an image at all


def colour(values: np.ndarray) -> np.ndarray:
    """Values (H, W) in [0, 1] → RGB uint8 (H, W, 3), black over red to pale yellow."""
    found: np.ndarray = _TABLE[(np.clip(values, 0, 1) * (len(_TABLE) - 1) + 0.5).astype(np.intp)]
    return found


def opacity(values: np.ndarray) -> np.ndarray:
    """How much of the colour of values (H, W) in [0, 1] shows over an image, in [0, 1]: nothing up to the middle of the
    scale, which is the heat of the outline, and from there on enough to be seen at once."""
    beyond = 2 * np.clip(values, 0, 1) - 1
    return np.where(beyond > 0, FAINTEST + (1 - FAINTEST) * beyond, 0)


def tinted(image: np.ndarray, values: np.ndarray, strongest: float = 1.0) -> np.ndarray:
    """An RGB uint8 image (H, W, 3) under the colours of values (H, W) in [0, 1], the hottest as opaque as `strongest`;
    where nothing shows the image stays as it is."""
    shown, hot = image.copy(), values > 0.5  # elsewhere nothing shows, and most of an image is elsewhere
    weight = strongest * opacity(values[hot])[..., None]
    shown[hot] = ((1 - weight) * image[hot] + weight * colour(values[hot])).round().astype(np.uint8)
    return shown


def overlay(image: np.ndarray, values: np.ndarray, opacity: float = 0.6) -> np.ndarray:
    """Heat (H, W) in [0, 1] over an RGB uint8 image (H, W, 3): the hotter, the more of the colour shows."""
    weight = (opacity * np.clip(values, 0, 1))[..., None]
    mixed: np.ndarray = (1 - weight) * image + weight * colour(values)
    return mixed.round().astype(np.uint8)
