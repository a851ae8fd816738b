"""The demo's plates: deterministic, natural variation without defects, and masks that are exactly the defect."""

from __future__ import annotations

import pytest
import torch

from fcdd.anomalies.plates import DEFECTS, VISIBLE, Plates, _photograph, generate

SIZE, EACH = 128, 4


@pytest.fixture(scope="module")
def plates() -> Plates:
    return generate(n_train=6, n_good=3, n_defects_each=EACH, size=SIZE, seed=5)


def test_shapes_labels_and_kinds(plates: Plates) -> None:
    count = 3 + EACH * len(DEFECTS)
    assert plates.train.shape == (6, 3, SIZE, SIZE)
    assert plates.test.shape == (count, 3, SIZE, SIZE)
    assert plates.masks.shape == (count, 1, SIZE, SIZE)
    assert {t.dtype for t in (plates.train, plates.test, plates.masks)} == {torch.uint8}
    assert plates.kinds == ("good",) * 3 + tuple(kind for kind in DEFECTS for _ in range(EACH))
    assert plates.labels.tolist() == [int(kind != "good") for kind in plates.kinds]
    assert torch.equal(plates.masks.amax((1, 2, 3)).long(), plates.labels)
    assert plates.masks.max() == 1


def test_equal_seeds_give_equal_plates(plates: Plates) -> None:
    again = generate(n_train=2, n_good=1, n_defects_each=EACH, size=SIZE, seed=5)
    assert torch.equal(again.train, plates.train[:2])
    assert torch.equal(again.test[1:], plates.test[3:])
    other = generate(n_train=2, n_good=1, n_defects_each=0, size=SIZE, seed=6)
    assert not torch.equal(other.train, again.train)
    with pytest.raises(ValueError, match="too small"):
        generate(size=64)
    with pytest.raises(ValueError, match="at least one"):
        generate(n_train=0)


def test_masks_are_where_the_defect_shows(plates: Plates) -> None:
    """A plate photographed with and without its defect differs inside the mask and, but for rounding, only there."""
    limit = round(VISIBLE * 255)
    for k, kind in enumerate(DEFECTS):
        for i in range(EACH):
            flawless, empty = _photograph((5, 2 + k, i), SIZE)
            row = 3 + EACH * k + i
            mask = plates.masks[row, 0].bool()
            change = (plates.test[row].int() - flawless.int()).abs().amax(0)
            assert empty.sum() == 0
            assert change[~mask].max() <= limit + 1, kind
            assert (change[mask] >= limit - 1).float().mean() > 0.97, kind  # the camera clips near white
            assert 4 <= mask.sum() < 0.12 * SIZE**2, kind


def test_defects_grow_more_severe(plates: Plates) -> None:
    area = plates.masks[3:].float().sum((1, 2, 3)).view(len(DEFECTS), EACH)
    assert (area[:, 2:].sum(1) > area[:, :2].sum(1)).all()
    assert (area[[0, 1, 2, 4], 3] > 1.5 * area[[0, 1, 2, 4], 0]).all()


def test_a_missing_mark_changes_nothing_but_its_ink(plates: Plates) -> None:
    bare = torch.stack([_photograph((5, 6, i), SIZE)[0] for i in range(EACH)]).float().mean(1)
    inked = plates.masks[-EACH:, 0].bool()
    for before, after, where in zip(bare, plates.test[-EACH:].float().mean(1), inked, strict=True):
        assert (after[where] > before[where]).all()
        assert (after[where] - before[where]).mean() > 20  # dark ink gave way to bright metal


def test_good_plates_vary_but_stay_plates(plates: Plates) -> None:
    images = plates.train.float().mean(1) / 255
    brightness = images.mean((1, 2))
    assert 0.005 < brightness.std() < 0.05
    middle = images[:, SIZE // 2, SIZE // 4 : -SIZE // 4]
    corner = images[:, :4, :4]
    assert middle.mean() > 4 * corner.mean()  # metal on a dark belt
    rows, columns = (images[:, 60:70, 40:90].diff(dim=d).abs().mean() for d in (1, 2))
    assert rows > 1.5 * columns  # brushed along the rows
    residual = (images[0] - images[1]).abs().mean()
    assert residual > 0.02  # far more than the camera's noise


def test_split_keeps_the_contract(plates: Plates) -> None:
    split = plates.split()
    assert len(split.nominal) == 6
    assert split.test[torch.tensor([4, 1])].shape == (2, 3, SIZE, SIZE)
    assert split.mask is not None
    mask = split.mask(5)
    assert mask.dtype == bool
    assert mask.sum() == plates.masks[5].sum()
    assert "6 nominal" in split.provenance
