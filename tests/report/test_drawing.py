"""What is drawn into an image: heat of good parts stays invisible, what is above the threshold cannot be missed."""

from __future__ import annotations

import numpy as np
import pytest

from fcdd.detector.calibration import Verdict
from fcdd.report.drawing import HALO, LINE, TONES, captioned, outlined, words

IMAGE = np.random.default_rng(0).integers(40, 215, (60, 80, 3), np.uint8)


def test_heat_of_good_parts_leaves_the_image_as_it_is() -> None:
    cold, nowhere = np.zeros((60, 80), np.float32), np.zeros((60, 80), np.bool_)
    assert np.array_equal(outlined(IMAGE, cold, nowhere), IMAGE)


def test_the_outline_lies_around_the_marked_pixels_and_hides_none_of_them() -> None:
    marked = np.zeros((60, 80), np.bool_)
    marked[20:40, 30:50] = True
    shown = outlined(IMAGE, np.zeros((60, 80), np.float32), marked, line=2)
    bright, dark = (shown == LINE).all(-1), (shown == HALO).all(-1)
    expected = np.zeros((60, 80), np.bool_)
    expected[18:42, 28:52] = True
    assert np.array_equal(bright, expected & ~marked)
    assert dark[17, 27:53].all()
    assert np.array_equal(shown[marked], IMAGE[marked])
    assert np.array_equal(shown[~(bright | dark)], IMAGE[~(bright | dark)])


def test_a_single_marked_pixel_at_the_corner_is_seen_on_any_image() -> None:
    marked = np.zeros((900, 900), np.bool_)
    marked[0, 0] = True
    for level in (0, 128, 255):
        shown = outlined(np.full((900, 900, 3), level, np.uint8), marked.astype(np.float32), marked)
        assert (shown == LINE).all(-1).sum() >= 8


def test_heat_tints_without_darkening() -> None:
    dark = np.full((60, 80, 3), 60, np.uint8)
    shown = outlined(dark, np.full((60, 80), 1.0, np.float32), np.zeros((60, 80), np.bool_))
    assert (shown.mean((0, 1)) > 60).all()


@pytest.mark.parametrize("width", [24, 96, 256, 1200])
def test_the_strip_lies_below_and_has_the_colour_of_the_verdict(width: int) -> None:
    image = np.full((50, width, 3), 90, np.uint8)
    for verdict in Verdict:
        shown = captioned(image, verdict, "2.4 × the reject limit")
        assert np.array_equal(shown[:50], image)
        assert shown.shape[1] == width
        assert (shown[50:] == TONES[verdict]).all(-1).any()


@pytest.mark.parametrize(
    ("score", "limit", "told"),
    [
        (0.0, 2.0, "0.00 × the reject limit"),
        (1.0, 2.0, "0.50 × the reject limit"),
        (1.999, 2.0, "just below the reject limit"),
        (2.001, 2.0, "just above the reject limit"),
        (4.0, 2.0, "2.0 × the reject limit"),
        (6.4, 2.0, "3.2 × the reject limit"),
        (200.0, 2.0, "100 × the reject limit"),
        (0.5, 0.0, "score 0.5; the reject limit is 0"),
    ],
)
def test_scores_in_words(score: float, limit: float, told: str) -> None:
    assert words(score, limit) == told
