"""What is looked at of an image of another aspect, and where it lies on the image."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcdd.errors import ImageError
from fcdd.framing import FITS, Fit, Frame

SIDES = st.integers(8, 60)


def test_an_aspect_other_than_trained_is_refused_with_a_remedy() -> None:
    with pytest.raises(ImageError, match=r"wide\.png: 192 × 108 pixels.* 1 : 1 .*--fit crop, pad or stretch"):
        Frame(1.0).check((108, 192), "wide.png")
    Frame(1.0).check((100, 102), "almost.png")
    Frame().check((1, 100), "no aspect is known.png")
    for fit in FITS:
        Frame(1.0, fit).check((108, 192), "wide.png")


@pytest.mark.parametrize(
    ("fit", "size", "box"),
    [
        ("crop", (108, 192), (0, 42, 108, 108)),
        ("pad", (108, 192), (-42, 0, 192, 192)),
        ("stretch", (108, 192), (0, 0, 108, 192)),
        ("crop", (192, 108), (42, 0, 108, 108)),
        ("pad", (192, 108), (0, -42, 192, 192)),
        ("crop", (100, 101), (0, 0, 100, 101)),
    ],
)
def test_boxes(fit: Fit, size: tuple[int, int], box: tuple[int, int, int, int]) -> None:
    assert Frame(1.0, fit).box(size) == box


@given(SIDES, SIDES, st.floats(0.3, 3), st.sampled_from(["crop", "pad"]))
def test_what_is_looked_at_has_the_aspect_and_goes_back_to_its_place(h: int, w: int, aspect: float, fit: Fit) -> None:
    image = np.random.default_rng(h * w).integers(1, 256, (h, w), np.uint8)
    frame = Frame(aspect, fit)
    seen = frame.apply(image)
    assert seen.shape[0] == pytest.approx(seen.shape[1] * aspect, abs=max(1, aspect)) or frame.fits((h, w))
    back = frame.back(seen, (h, w))
    assert back.shape == image.shape
    assert (back[back > 0] == image[back > 0]).all()  # in its place, or not looked at
    assert (back > 0).all() == (seen.size >= image.size)
    covered = frame.covered((h, w), seen.shape)
    assert covered is None or covered.sum() == image.size


def test_padding_repeats_the_border() -> None:
    seen = Frame(1.0, "pad").apply(np.arange(8, dtype=np.uint8).reshape(2, 4))
    assert seen.tolist() == [[0, 1, 2, 3], [0, 1, 2, 3], [4, 5, 6, 7], [4, 5, 6, 7]]
