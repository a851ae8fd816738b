"""What labelled defects teach, on a small description with the real trunk."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fcdd.anomalies.cues import Cue
from fcdd.nn.description import Architecture, Description
from fcdd.nn.objectives import pseudo_huber
from fcdd.training import head

SIDE = 64


def part(seed: int, scratch: bool = False) -> np.ndarray:
    random = np.random.default_rng(seed)
    picture = np.repeat(np.clip(random.normal(120, 12, (SIDE, SIDE, 1)), 0, 255).astype(np.uint8), 3, 2)
    if scratch:
        picture[30:34, 10:54] = 250
    return picture


MASK = np.zeros((SIDE, SIDE), np.bool_)
MASK[24:40, 8:56] = True


@pytest.fixture(scope="module")
def description() -> Description:
    torch.manual_seed(0)
    made = Description(Architecture(planes=4, directions=2, dimensions=8)).eval()
    made.trunk.load()
    good = torch.stack([torch.from_numpy(part(i)).permute(2, 0, 1) for i in range(12)]).float()
    made.fit_light(good)
    with torch.no_grad():
        vectors = made.features(good).permute(0, 2, 3, 1).reshape(-1, sum(made.trunk.widths))
    made.fit(vectors, torch.Generator().manual_seed(0))
    return made


def gathered(description: Description, mask: np.ndarray | None, inside: torch.Tensor) -> head.Cells:
    return head.gather(description, [part(99, scratch=True)], [mask], (SIDE, SIDE), inside, seed=0)


def test_cells_come_from_the_mask_and_from_around_it(description: Description) -> None:
    everywhere = torch.ones(64, dtype=torch.bool)
    cells = gathered(description, MASK, everywhere)
    assert cells.weight.sum().item() == pytest.approx(1)
    assert len(cells.anomalous) == len(cells.weight) > 10
    with torch.no_grad():
        bad, good = description.planes(cells.anomalous[:, 0]), description.planes(cells.nominal)
    assert bad.median() > 1.5 * good.median()
    right = everywhere.clone().view(8, 8)
    right[:, :4] = False
    assert len(gathered(description, MASK, right.flatten()).anomalous) < len(cells.anomalous)


def test_a_defect_without_mask_lends_its_strangest_cells(description: Description) -> None:
    cells = gathered(description, None, torch.ones(64, dtype=torch.bool))
    with torch.no_grad():
        assert description.planes(cells.anomalous[:, 0]).median() > description.planes(cells.nominal).median()


def test_the_place_of_a_cue_is_never_learnt_as_anomalous(description: Description) -> None:
    cue = Cue((0.0, 0.3, 1.0, 0.7), (part(99, scratch=True)[19:45],))  # where the scratch is
    plain = gathered(description, None, torch.ones(64, dtype=torch.bool))
    mended = head.gather(
        description, [part(99, scratch=True)], [None], (SIDE, SIDE), torch.ones(64, dtype=torch.bool), 0, [cue]
    )
    with torch.no_grad():
        before, after = (description.planes(cells.anomalous[:, 0]) for cells in (plain, mended))
    assert after.median() < before.median()


def test_whole_pictures_lend_bags_of_all_their_views(description: Description) -> None:
    smooth = [np.full((SIDE, SIDE, 3), level, np.uint8) for level in (110, 120, 130)]
    bags = head.gather(description, smooth, [None] * 3, (SIDE, SIDE), torch.ones(64, dtype=torch.bool), 0, whole=True)
    assert bags.anomalous.shape == (3 * head.VIEWS, head.BAG, sum(description.trunk.widths))
    assert bags.weight.sum().item() == pytest.approx(3)
    assert len(bags.nominal) == 0


def test_a_bag_is_learnt_by_its_mean(description: Description) -> None:
    """Half of every bag are good cells: further good cells stay good, as the other half can make the bag anomalous.
    Cell by cell they would have to be both, which ends near A = log 1.5."""
    generator = torch.Generator().manual_seed(0)
    nominal, unseen = torch.randn(2, 2000, sum(description.trunk.widths), generator=generator)
    cells = torch.randn(100, head.BAG, sum(description.trunk.widths), generator=generator)
    cells[:, ::2] += 1.0
    bags = head.Cells(cells, torch.ones(100), nominal[:0])
    head.train_head(description, nominal, bags, seed=0)
    assert description.head is not None
    with torch.no_grad():
        good, bad = (pseudo_huber(description.head(z)).median() for z in (unseen, cells[:, ::2].flatten(0, 1)))
    assert good < 0.1
    assert bad > 1


def test_bags_leave_out_the_place_of_a_cue(description: Description) -> None:
    """The upper half is striped, the lower plain: with a cue above, bags hold plain cells alone."""
    picture = part(5)
    picture[:32:4] = 255
    cue = Cue((0.0, 0.0, 1.0, 0.6), (picture[:38],))
    everywhere = torch.ones(64, dtype=torch.bool)
    strangeness = []
    for cues in ([], [cue]):
        bags = head.gather(description, [picture], [None], (SIDE, SIDE), everywhere, 0, cues, whole=True)
        with torch.no_grad():
            strangeness.append(description.planes(bags.anomalous[0]).max().item())
    assert strangeness[1] < 0.5 * strangeness[0]


def test_the_head_tells_defects_from_good_cells_and_repeats(description: Description) -> None:
    cells = gathered(description, MASK, torch.ones(64, dtype=torch.bool))
    assert description.head is not None
    ends = []
    for _ in range(2):
        head.train_head(description, cells.nominal, cells, seed=0)
        with torch.no_grad():
            ends.append([pseudo_huber(description.head(z)) for z in (cells.anomalous[:, 0], cells.nominal)])
    bad, good = ends[0]
    assert bad.median() > 3 * good.median()
    assert torch.equal(bad, ends[1][0])
