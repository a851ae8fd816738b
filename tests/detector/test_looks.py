"""Traits against independent formulas; a batch under another light is noticed, one with defects is not."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageFilter
from scipy.ndimage import laplace

from fcdd.detector import looks
from fcdd.detector.looks import FEWEST, TRAITS, compare, measure
from fcdd.errors import ModelError

NAMES = [trait.name for trait in TRAITS]


def part(rng: np.random.Generator, radius: float = 0.3, side: int = 96) -> np.ndarray:
    """A grained disc on a plain ground; light and size vary a little from image to image."""
    rows, columns = np.mgrid[:side, :side] / side - 0.5
    radius *= 1 + rng.normal(0, 0.005)
    disc = np.clip((radius - np.hypot(rows, columns)) * side, 0, 1)[:, :, None] * [110.0, 80.0, 60.0]
    grain = rng.normal(0, 12, (side, side, 1)) * (disc > 0)
    return np.clip((50 + disc + grain) * (1 + rng.normal(0, 0.02)), 0, 255).astype(np.uint8)


def blurred(pixels: np.ndarray) -> np.ndarray:
    return np.asarray(Image.fromarray(pixels).filter(ImageFilter.GaussianBlur(1)))


def batch(count: int, seed: int, **options: float) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [part(rng, **options) for _ in range(count)]


def looks_of(pixels: list[np.ndarray]) -> np.ndarray:
    return np.array([measure(one) for one in pixels])


@pytest.fixture(scope="module")
def usual() -> np.ndarray:
    return looks_of(batch(40, 0))


def test_traits_are_what_they_say() -> None:
    pixels = part(np.random.default_rng(0))
    luma = np.asarray(Image.fromarray(pixels).convert("L"), float)
    red, green, blue = pixels.reshape(-1, 3).mean(0) + 1
    found = dict(zip(NAMES, measure(pixels), strict=True))
    assert found["brightness"] == pytest.approx(luma.mean())
    assert found["contrast"] == pytest.approx(luma.std())
    assert found["red"] == pytest.approx(np.log(red / green))
    assert found["blue"] == pytest.approx(np.log(blue / green))
    fine = np.abs(laplace(luma)[1:-1, 1:-1]).mean() + 0.1
    assert found["sharpness"] == pytest.approx(np.log(fine / (luma.std() + 1)), rel=1e-4)
    assert np.exp(found["extent"]) == pytest.approx(0.3 / np.sqrt(2), rel=0.03)  # of a disc: radius / √2


def test_a_flat_image_has_finite_traits() -> None:
    assert np.isfinite(measure(np.full((10, 30, 3), 7, np.uint8))).all()
    assert np.isfinite(measure(np.zeros((8, 8, 3), np.uint8))).all()


@pytest.mark.parametrize(
    ("trait", "word", "change"),
    [
        ("brightness", "brighter by", lambda p: np.clip(p * 1.15, 0, 255).astype(np.uint8)),
        ("brightness", "darker by", lambda p: (p * 0.85).astype(np.uint8)),
        ("red", "redder by", lambda p: np.clip(p * [1.1, 1, 1], 0, 255).astype(np.uint8)),
        ("sharpness", "blurred by", blurred),
    ],
)
def test_another_light_or_focus_is_named_with_the_remedy(usual: np.ndarray, trait: str, word: str, change) -> None:
    found = compare(usual, looks_of([change(one) for one in batch(12, 1)]))
    named = {one.trait: one for one in found.changes}
    assert named[trait].words.startswith(word)
    assert named[trait].p_value <= 0.01 / len(TRAITS)
    assert word in found.sentence
    assert "fcdd calibrate MODEL NEW_GOOD" in found.sentence
    assert found.to_dict()["sentence"] == found.sentence


def test_a_part_nearer_to_the_camera_is_larger_in_view(usual: np.ndarray) -> None:
    found = compare(usual, looks_of(batch(12, 1, radius=0.33)))
    assert next(one for one in found.changes if one.trait == "extent").words == "larger in view by 10 %"


def test_defects_are_no_other_light(usual: np.ndarray) -> None:
    """Four of five parts have a dark stain of a hundredth of the image."""
    pixels = batch(40, 1)
    for one in pixels[:32]:
        one[40:50, 40:50] //= 2
    assert compare(usual, looks_of(pixels)).changes == ()


def test_false_alarms_are_rarer_than_promised() -> None:
    rng = np.random.default_rng(2)
    alarms = [bool(compare(rng.normal(size=(30, 7)) * 9, rng.normal(size=(12, 7)) * 9).changes) for _ in range(400)]
    assert np.mean(alarms) <= looks.LEVEL + 0.01  # and two standard errors


def test_a_change_within_the_usual_spread_is_none() -> None:
    rng = np.random.default_rng(3)
    usual, new = rng.normal(0, 10, (500, 7)), rng.normal(5, 10, (500, 7))
    assert compare(usual, new).changes == ()  # half a spread, however sure
    assert compare(usual, new + 15).changes != ()


def test_few_images_say_nothing(usual: np.ndarray) -> None:
    found = compare(usual, usual[: FEWEST - 1] + 100)
    assert (found.enough, found.changes, found.sentence) == (False, (), "")
    assert compare(usual, usual[:FEWEST] + 100).changes
    assert not compare(usual[: FEWEST - 1], usual + 100).enough
    assert not compare(usual[:6], usual[:6] + 100).enough  # p = 2 / 924 at best


def test_a_file_keeps_them_and_other_traits_are_not_compared(usual: np.ndarray) -> None:
    assert looks.from_dict(looks.to_dict(usual)) == pytest.approx(usual, abs=1e-5)
    assert looks.from_dict(None) is None
    assert looks.from_dict({"traits": ["temperature"], "values": [[1.0]]}) is None
    for wrong in ([[1.0]], [[float("nan")] * len(TRAITS)], [1.0]):
        with pytest.raises(ModelError, match="looks"):
            looks.from_dict({"traits": NAMES, "values": wrong})


def test_a_model_keeps_at_most_a_thousand() -> None:
    many = [np.full(7, float(i)) for i in range(2500)]
    kept = looks.some(many)
    assert kept is not None
    assert len(kept) == 834  # every third
    assert looks.some([]) is None
