"""A user's images in every form they come in, against Pillow and against each other."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fcdd import images
from fcdd.errors import ImageError
from fcdd.reading import ImageLike, digest, name_of, pixels, problems, shape_of, stream


def noise(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.fixture
def forms(tmp_path: Path) -> list[ImageLike]:
    """One image (20, 30) as path, as string, as bytes and as array."""
    images.save_png(noise(20, 30), tmp_path / "a.png")
    return [tmp_path / "a.png", str(tmp_path / "a.png"), (tmp_path / "a.png").read_bytes(), noise(20, 30)]


def levels(count: int) -> list[np.ndarray]:
    """Flat images, each of its own grey and size."""
    return [np.full((10 + level, 12, 3), level, np.uint8) for level in range(count)]


def test_every_form_of_an_image_has_the_same_pixels_and_shape(forms: list[ImageLike]) -> None:
    for form in forms:
        assert np.array_equal(pixels(form), noise(20, 30))
        assert shape_of(form) == (20, 30)


def test_shape_is_that_of_the_upright_image() -> None:
    buffer, exif = io.BytesIO(), Image.Exif()
    exif[274] = 6  # to be turned by a quarter
    Image.fromarray(noise(20, 30)).save(buffer, "PNG", exif=exif)
    assert shape_of(buffer.getvalue()) == pixels(buffer.getvalue()).shape[:2] == (30, 20)


def test_a_grey_array_becomes_three_equal_channels() -> None:
    grey = noise(5, 7)[..., 0]
    rgb = pixels(grey)
    assert rgb.shape == (5, 7, 3)
    assert all(np.array_equal(rgb[..., c], grey) for c in range(3))


@pytest.mark.parametrize(
    "array",
    [np.zeros((4, 4, 3), np.float32), np.zeros((4, 4, 4), np.uint8), np.zeros((2, 4, 4, 3), np.uint8)],
    ids=["float", "four channels", "batch"],
)
def test_other_arrays_are_refused_with_what_they_are(array: np.ndarray) -> None:
    with pytest.raises(ImageError, match=rf"{array.dtype} \(.*Give uint8 of shape"):
        pixels(array)


def test_a_damaged_file_names_itself(tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"no image")
    with pytest.raises(ImageError, match=r"broken\.png"):
        pixels(tmp_path / "broken.png")


def test_names_for_messages(forms: list[ImageLike]) -> None:
    assert [name_of(form, 7) for form in forms] == [str(forms[0]), str(forms[0]), "image 7", "image 7"]


def test_a_digest_knows_the_content_and_not_the_name(forms: list[ImageLike], tmp_path: Path) -> None:
    copy = tmp_path / "other name.png"
    copy.write_bytes(Path(str(forms[0])).read_bytes())
    assert digest(copy) == digest(forms[0]) == digest(forms[1]) == digest(forms[2])
    array = noise(20, 30)
    assert digest(array) == digest(array.copy()) == digest(np.asfortranarray(array))
    changed = array.copy()
    changed[3, 4, 1] ^= 1
    flat = np.zeros((4, 6, 3), np.uint8)
    assert len({digest(a) for a in (array, changed, flat, flat.reshape(6, 4, 3))}) == 4


def first_values(batch: list[ImageLike]) -> list[tuple[int, int]]:
    """Each image's first value with the size of the batch it came in; slow for some, so that order is at risk."""
    values = [int(pixels(image)[0, 0, 0]) for image in batch]
    time.sleep(0.01 * (values[0] % 3))
    return [(value, len(batch)) for value in values]


@pytest.mark.parametrize("count", [1, 4, 50])
@pytest.mark.parametrize("workers", [1, 3])
def test_stream_keeps_order_and_batches(count: int, workers: int) -> None:
    found = list(stream(levels(11), first_values, count, workers))
    assert [value for value, _ in found] == list(range(11))
    assert [size for _, size in found] == [min(count, 11 - i // count * count) for i in range(11)]


def test_an_endless_stream_is_read_one_batch_ahead_and_no_further() -> None:
    taken = 0

    def endless() -> Iterator[np.ndarray]:
        nonlocal taken
        while True:
            taken += 1
            yield np.full((8, 8, 3), taken % 256, np.uint8)

    found = stream(endless(), first_values, 4, 2)
    for done in range(1, 21):
        assert next(found) == (done, 4)
        assert taken <= 4 * ((done - 1) // 4 + 3)


def test_nothing_gives_nothing_and_a_bad_image_its_error(forms: list[ImageLike]) -> None:
    assert list(stream([], first_values, 4, 2)) == []
    found = stream([forms[0], forms[3], b"no image", forms[2]], first_values, 2, 2)
    assert len([next(found), next(found)]) == 2
    with pytest.raises(ImageError):
        next(found)


def test_masks_have_problems_of_their_own(tmp_path: Path) -> None:
    square = np.zeros((40, 40), dtype=np.uint8)
    square[10:23, 9:31] = 255
    Image.fromarray(square).save(tmp_path / "m.jpg", quality=50)
    assert problems([tmp_path / "m.jpg"]) == []
    assert len(problems([tmp_path / "m.jpg"], masks=True)) == 1
