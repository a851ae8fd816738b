"""Items keep small, decodable thumbnails of what they were given."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from fcdd.detector.calibration import Verdict
from fcdd.report import Item
from fcdd.report.content import thumbnail, to_image


def decode(uri: str) -> Image.Image:
    kind, data = uri.split(",", 1)
    image = Image.open(io.BytesIO(base64.b64decode(data)))
    assert kind == f"data:image/{str(image.format).lower()};base64"
    return image


def test_thumbnails_keep_shape_and_colour() -> None:
    image = np.zeros((300, 600, 3), np.uint8)
    image[:, :300] = (200, 40, 20)
    small = decode(thumbnail(image))
    assert small.size == (160, 80)
    np.testing.assert_allclose(small.getpixel((40, 40)), (200, 40, 20), atol=6)
    np.testing.assert_allclose(small.getpixel((120, 40)), (0, 0, 0), atol=6)
    mask = np.zeros((320, 320), bool)
    mask[:, 160:] = True
    assert decode(thumbnail(mask)).convert("L").getcolors() == [(12800, 0), (12800, 255)]
    assert decode(thumbnail(np.zeros((20, 10), np.uint8))).size == (10, 20)  # never enlarged


def test_an_item_of_arrays() -> None:
    image = np.full((50, 80, 3), 9, np.uint8)
    item = Item.of("a.png", 2, image, label=1, verdict=Verdict.NG, overlay=image, truth=np.ones((50, 80), bool))
    assert item.size == (80, 50)
    assert list(item.thumbnails) == ["input", "overlay", "truth"]


def test_refusals() -> None:
    image = np.zeros((4, 4, 3), np.uint8)
    with pytest.raises(ValueError, match="finite"):
        Item.of("a.png", float("nan"), image)
    with pytest.raises(ValueError, match="label"):
        Item.of("a.png", 1.0, image, label=2)
    with pytest.raises(ValueError, match="uint8"):
        to_image(np.zeros((4, 4, 3), np.float32))
