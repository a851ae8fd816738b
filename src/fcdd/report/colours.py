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


def colour(values: np.ndarray) -> np.ndarray:
    """Values (H, W) in [0, 1] → RGB uint8 (H, W, 3), black over red to pale yellow."""
    position = np.clip(values, 0, 1) * (len(_ANCHORS) - 1)
    steps = np.arange(len(_ANCHORS))
    return np.stack([np.interp(position, steps, _ANCHORS[:, c]) for c in range(3)], -1).round().astype(np.uint8)


def overlay(image: np.ndarray, values: np.ndarray, opacity: float = 0.6) -> np.ndarray:
    """Heat (H, W) in [0, 1] over an RGB uint8 image (H, W, 3): the hotter, the more of the colour shows."""
    weight = (opacity * np.clip(values, 0, 1))[..., None]
    mixed: np.ndarray = (1 - weight) * image + weight * colour(values)
    return mixed.round().astype(np.uint8)
