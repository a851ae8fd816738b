"""Where parts on a plain background are; and no proposal where that is not sure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fcdd import images
from fcdd.check.foreground import propose
from fcdd.errors import DataError

Image = np.ndarray
SHAPE = (90, 120)


def part(seed: int, at: tuple[float, float] = (45.0, 60.0), radius: float = 20.0) -> Image:
    """A grained disc on a ground that is lit unevenly, with a grain of a level."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[: SHAPE[0], : SHAPE[1]]
    disc = np.hypot(rows - at[0], columns - at[1]) < radius
    ground = 60 + 0.2 * columns + rng.normal(0, 1, SHAPE)
    return np.repeat(np.where(disc, 150 + rng.normal(0, 15, SHAPE), ground)[..., None], 3, 2).astype(np.uint8)


def bar(seed: int) -> Image:
    """A part that goes through the image from left to right."""
    image = part(seed, radius=0)
    image[20:65] = 200
    return image


def test_the_mask_holds_every_part_and_little_more() -> None:
    rng = np.random.default_rng(0)
    places = [(45 + rng.uniform(-4, 4), 60 + rng.uniform(-4, 4)) for _ in range(12)]
    found = propose([part(seed, place) for seed, place in enumerate(places)])
    rows, columns = (np.mgrid[: found.mask.shape[0], : found.mask.shape[1]].T + 0.5).T
    scale = SHAPE[0] / found.mask.shape[0]
    assert found.mask.shape[1] / found.mask.shape[0] == pytest.approx(120 / 90, rel=0.02)
    for row, column in places:
        assert found.mask[np.hypot(rows * scale - row, columns * scale - column) < 20].all()
    assert not found.mask[np.hypot(rows * scale - 45, columns * scale - 60) > 20 + 6 + 8].any()
    assert found.share == pytest.approx(found.mask.mean())
    assert 0.1 < found.share < 0.35


def test_dust_on_the_background_is_no_part() -> None:
    dusty = [part(seed) for seed in range(12)]
    dusty[3][5, 100] = 255  # less than a thousandth of the image
    assert np.array_equal(propose(dusty).mask, propose([part(seed) for seed in range(12)]).mask)


def test_a_hole_in_the_part_belongs_to_it() -> None:
    rings = [part(seed) for seed in range(12)]
    for image in rings:
        image[40:50, 55:65] = image[:10, :10].mean().astype(np.uint8)
    found = propose(rings).mask
    assert found[found.shape[0] // 2, found.shape[1] // 2]


@pytest.mark.parametrize(
    ("why", "made"),
    [
        ("no background", lambda s: np.random.default_rng(s).integers(0, 256, (64, 64, 3), np.uint8)),
        ("no background", lambda s: bar(s)),
        ("no part in some images", lambda s: part(s, radius=0)),
        ("nearly everywhere", lambda s: part(s, (18 + 18 * (s // 4), 18 + 28 * (s % 4)), 14)),
    ],
)
def test_where_it_is_unsure_there_is_no_proposal(why: str, made) -> None:
    many = [made(seed) for seed in range(16)]
    with pytest.raises(DataError, match=f"no region of interest can be proposed: .*{why}.*--roi MASK"):
        propose(many)


@pytest.mark.parametrize("name", ["bottle", "cable", "carpet", "grid", "hazelnut", "pill", "screw", "transistor"])
def test_real_parts_keep_their_defects(shared_data: Path, name: str) -> None:
    root = shared_data / "mvtec" / name
    if not root.is_dir():
        pytest.skip(f"{name} is not among the real data")
    good = images.find(root / "train" / "good")[::6]
    if name not in ("bottle", "hazelnut", "pill"):  # textured grounds, and screws that lie any way round
        with pytest.raises(DataError, match="no region of interest"):
            propose(good)
        return
    found = propose(good).mask
    marked = [images.load_mask(path) for path in images.find(root / "ground_truth")[::3]]
    # Masks of bottles were drawn a little beyond the bottle, up to the white corners.
    inside = [mask[images.resize(found.astype(np.uint8), mask.shape) > 0].sum() / mask.sum() for mask in marked]
    assert np.mean(inside) > 0.995
    assert min(inside) > 0.9
