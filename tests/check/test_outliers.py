"""Good images unlike the rest, second populations and another light."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import median_abs_deviation

from fcdd.check import check
from fcdd.check.looks import Look
from fcdd.check.outliers import shift, unlike

from .parts import bluer, blurred, brief, darker, load, moved, part, save


def test_odd_images_and_another_light_are_found_and_nothing_else(parts: Path) -> None:
    rng = np.random.default_rng(5)
    odd = {"darker": darker, "blurred": blurred, "bluer": bluer, "something else in view": moved}
    for word, change in odd.items():
        save(change(part(rng)), parts / f"train/good/{word}.png")
    for file in (parts / "test" / "good").iterdir():
        save((load(file).clip(10) - 10).astype(np.uint8), file)
    diagnosis = check(parts, quiet=True)
    unlike_rest = {("warning", "unlike-the-rest", f"train/good/{word}.png") for word in odd}
    assert brief(diagnosis) == {*unlike_rest, ("note", "lighting-shift")}
    for finding in diagnosis.findings[:-1]:
        assert f"{Path(finding.files[0]).stem} (z = " in finding.message
    assert "darker by 10 gray levels" in diagnosis.findings[-1].message


def look(number: int, brightness: float, group: str = "train good", level: int = 0) -> Look:
    traits, thumb = np.array([brightness, 0, 0, 0, 0, 0, 0.0]), np.full((64, 64), level, dtype=np.uint8)
    return Look(Path(f"{number}"), f"{number}", group, (64, 64), b"", False, traits, thumb, "", 100)


def z(brightness: list[float]) -> float:
    """The last value's distance from the median in robust standard deviations, with a floor of two gray levels."""
    spread = median_abs_deviation(brightness, scale="normal")
    return float((brightness[-1] - np.median(brightness)) / np.sqrt(spread**2 + 4))


@pytest.mark.parametrize(("last", "found"), [(63, 0), (64, 1), (-44, 0), (-45, 1)])
def test_unlike_is_seven_robust_deviations(last: float, found: int) -> None:
    brightness = [*np.arange(20.0), last]
    assert (abs(z(brightness)) > 7) == bool(found)
    findings = list(unlike([look(number, value) for number, value in enumerate(brightness)]))
    assert [finding.files for finding in findings] == [("20",)] * found
    for finding in findings:
        words = f"{'brighter' if last > 0 else 'darker'} (z = {z(brightness):+.0f})"
        assert finding.message == f"Unlike the other train good images: {words}."


def test_many_unlike_images_are_a_second_population() -> None:
    for crowd, code in ((2, "unlike-the-rest"), (3, "two-populations")):  # of 20 and 21, against a tenth
        looks = [look(number, 200 * (number < crowd)) for number in range(18 + crowd)]
        assert {finding.code for finding in unlike(looks)} == {code}
        assert {file for finding in unlike(looks) for file in finding.files} == {f"{at}" for at in range(crowd)}


def test_something_else_is_far_from_the_median_image_never_near() -> None:
    levels = [80, 120] * 10 + [100, 100, 255]  # median 100
    (finding,) = unlike([look(number, 0, level=level) for number, level in enumerate(levels)])
    assert finding.files == ("22",)
    assert "something else in view" in finding.message


def test_few_images_have_no_spread_to_judge_by() -> None:
    assert list(unlike([look(number, 0) for number in range(18)] + [look(18, 200)])) == []
    assert list(shift([look(0, 0)] * 9 + [look(1, 200, "test good")] * 20)) == []


@pytest.mark.parametrize(
    ("spread", "levels", "noted"), [(0, 2.9, False), (0, 3.1, True), (2, 5.3, False), (2, 5.5, True)]
)
def test_a_shift_is_one_and_a_half_deviations_with_their_floor(spread: float, levels: float, noted: bool) -> None:
    train = [100 + spread * sign for sign in (-1, 1) for _ in range(10)]  # a deviation of 1.4826 · spread
    test = [float(np.median(train)) + levels] * 10
    looks = [look(0, value) for value in train] + [look(1, value, "test good") for value in test]
    assert [finding.code for finding in shift(looks)] == ["lighting-shift"] * noted
