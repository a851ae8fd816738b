"""Colours and overlays for people to look at."""

from __future__ import annotations

import numpy as np

from fcdd.report.colours import colour, overlay


def test_colour_runs_from_dark_to_bright() -> None:
    ramp = colour(np.linspace(0, 1, 64)[None]).astype(float) @ [0.299, 0.587, 0.114]
    assert (np.diff(ramp[0]) > 0).all()
    assert colour(np.array([[-1.0, 2.0]])).tolist() == [[[0, 0, 4], [252, 255, 164]]]


def test_overlay_leaves_cold_pixels_alone_and_shows_hot_ones() -> None:
    image = np.full((2, 2, 3), 90, np.uint8)
    heat = np.array([[0.0, 0.0], [0.0, 1.0]])
    shown = overlay(image, heat, opacity=1.0)
    assert (shown[0] == 90).all()
    assert shown[1, 1].tolist() == [252, 255, 164]
