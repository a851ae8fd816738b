"""Planes and whitening against slow loops, plane geometry and made-up clusters whose shape is known."""

from __future__ import annotations

import pytest
import torch
from torch import Generator, Tensor

from fcdd.nn import planes as module
from fcdd.nn.planes import Planes, Whiten, lloyd, nearest, spread

DIMENSIONS = 20


def seeded(seed: int) -> Generator:
    return torch.Generator().manual_seed(seed)


def random_planes(count: int, rank: int, dimensions: int, length: float = 1.0) -> Planes:
    """Planes with orthogonal directions of `length`."""
    planes = Planes(count, rank, dimensions)
    planes.centres.copy_(3 * torch.randn(count, dimensions, generator=seeded(1)))
    for k in range(count):
        axes = torch.linalg.qr(torch.randn(dimensions, rank, generator=seeded(2 + k))).Q
        planes.directions[k * rank : (k + 1) * rank] = length * axes.T
    return planes


class Clusters:
    """Nominal features: three far centres, each with a wide spread along two directions and little noise."""

    WIDE, NOISE = 5.0, 0.1

    def __init__(self, seed: int = 0) -> None:
        self.generator = seeded(seed)
        self.centres = 15 * torch.randn(3, DIMENSIONS, generator=self.generator)
        bases = torch.linalg.qr(torch.randn(3, DIMENSIONS, 3, generator=self.generator)).Q
        self.axes, self.normal = bases[..., :2], bases[..., 2]  # of each plane, and one direction off it

    def draw(self, each: int) -> tuple[Tensor, Tensor]:
        """Features (3·each, D) and the cluster of each."""
        which = torch.arange(3).repeat_interleave(each)
        along = self.WIDE * torch.randn(len(which), 2, generator=self.generator)
        noise = self.NOISE * torch.randn(len(which), DIMENSIONS, generator=self.generator)
        return self.centres[which] + (self.axes[which] @ along[..., None])[..., 0] + noise, which


@pytest.mark.parametrize("length", [1.0, 0.7])
def test_distance_is_the_double_loop(length: float) -> None:
    planes = random_planes(5, 3, 12, length)
    planes.weights.copy_(torch.linspace(0.6, 1.4, 5))
    x = 4 * torch.randn(40, 12, generator=seeded(0))
    expected = []
    for point in x.double():
        found = []
        for k in range(5):
            offset = point - planes.centres[k].double()
            explained = sum(float(planes.directions[3 * k + j].double() @ offset) ** 2 for j in range(3))
            found.append(float(planes.weights[k]) * (float(offset @ offset) - explained))
        expected.append(min(found))
    assert torch.allclose(planes(x).double(), torch.tensor(expected, dtype=torch.float64), rtol=1e-4)


def test_distance_is_zero_on_a_plane_and_orthogonal_off_it() -> None:
    planes = random_planes(1, 2, 8)
    normal = torch.linalg.qr(torch.cat([planes.directions, torch.randn(1, 8, generator=seeded(9))]).T).Q[:, 2]
    on = planes.centres[0] + torch.tensor([[4.0, -2.0], [0.0, 0.0], [-9.0, 5.0]]) @ planes.directions
    assert planes(on).max() < 1e-3
    for away in (0.5, 3.0):
        assert torch.allclose(planes(on + away * normal), torch.full((3,), away**2), rtol=1e-2)


def test_distance_is_never_negative() -> None:
    planes = random_planes(3, 2, 8)
    on = planes.centres.repeat_interleave(2, 0) + 100 * planes.directions
    assert (planes(on) >= 0).all()


def test_fit_learns_where_nominal_features_vary() -> None:
    clusters = Clusters()
    planes = Planes(3, 2, DIMENSIONS)
    planes.fit(clusters.draw(400)[0], clusters.generator)
    fresh, which = clusters.draw(200)
    within = planes(fresh)
    off = planes(fresh + 3 * clusters.normal[which])
    noise = (DIMENSIONS - 2) * clusters.NOISE**2
    assert 0.7 * noise < within.median() < 2.5 * noise  # the wide spread itself costs next to nothing
    assert off.median() == pytest.approx(3**2 + noise, rel=0.1)
    assert off.min() > within.max()
    alone = torch.cdist(fresh, clusters.centres).square().amin(1)
    assert alone.median() > 100 * within.median()  # what distances to the centres would have given


def test_the_same_distance_means_less_where_nominal_features_scatter_more() -> None:
    calm, rough = 0.1, 0.4
    noise = torch.randn(2, 1000, DIMENSIONS, generator=seeded(0)) * torch.tensor([calm, rough]).view(2, 1, 1)
    noise[1] += 30
    planes = Planes(2, 2, DIMENSIONS)
    planes.fit(noise.flatten(0, 1), seeded(1))
    beside_calm, beside_rough = planes(torch.tensor([[0.0], [30.0]]).expand(2, DIMENSIONS) + 1.0).tolist()
    # Weights go by the variance to the power −¼, so the ratio is (0.4² / 0.1²)^¼.
    assert beside_calm / beside_rough == pytest.approx((rough / calm) ** 0.5, rel=0.1)


def test_noise_alone_earns_no_direction() -> None:
    """Where every direction varies alike, none is explained away: the shrinkage keeps the whole distance."""
    x = torch.randn(4000, DIMENSIONS, generator=seeded(0))
    planes = Planes(1, 2, DIMENSIONS)
    planes.fit(x, seeded(1))
    assert planes.directions.square().sum(1).max() < 0.3
    assert torch.allclose(planes(x).mean(), (x - x.mean(0)).square().sum(1).mean(), rtol=0.03)


def test_fit_repeats_from_its_generator() -> None:
    x = torch.randn(600, DIMENSIONS, generator=seeded(0))
    found = []
    for seed in (5, 5, 6):
        planes = Planes(8, 2, DIMENSIONS)
        planes.fit(x, seeded(seed))
        found.append(planes)
    assert torch.equal(found[0].centres, found[1].centres)
    assert torch.equal(found[0].directions, found[1].directions)
    assert not torch.equal(found[0].centres, found[2].centres)


@pytest.mark.parametrize("distinct", [1, 3])
def test_fewer_different_features_than_planes_are_described_all_the_same(distinct: int) -> None:
    few = torch.randn(distinct, DIMENSIONS, generator=seeded(0))
    x = few.repeat(30, 1)
    planes = Planes(6, 2, DIMENSIONS)
    planes.fit(x, seeded(1))
    assert planes(x).max() < 1e-3
    assert planes(x + 2).min() > 1


def test_nearest_is_the_smallest_of_all_distances_over_any_number_of_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    x, centres = torch.randn(50, 6, generator=seeded(0)), torch.randn(7, 6, generator=seeded(1))
    all_pairs = torch.cdist(x, centres).square()
    for chunk in (4096, 8):
        monkeypatch.setattr(module, "CHUNK", chunk)
        distances, indices = nearest(x, centres)
        assert torch.allclose(distances, all_pairs.amin(1), atol=1e-4)
        assert torch.equal(indices, all_pairs.argmin(1))


@pytest.mark.parametrize("dimensions", [8, 200])  # chosen in the features themselves, and in a random projection
def test_spread_gives_a_rare_appearance_its_centre(dimensions: int) -> None:
    common = torch.randn(2000, dimensions, generator=seeded(0))
    rare = common.new_full((1, dimensions), 20.0)
    chosen = spread(torch.cat([common, rare]), 4, seeded(1))
    assert chosen.shape == (4,)
    assert 2000 in chosen
    assert len(chosen.unique()) == 4


def test_lloyd_comes_to_the_means_and_leaves_a_lost_centre() -> None:
    clusters = Clusters()
    x, which = clusters.draw(100)
    start = torch.cat([x[[0, 100, 200]], torch.full((1, DIMENSIONS), 1e3)])
    centres = lloyd(x, start)
    means = torch.stack([x[which == k].mean(0) for k in range(3)])
    assert torch.allclose(centres[:3], means, atol=1e-3)
    assert torch.equal(centres[3], start[3])


def test_whitening_makes_all_directions_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHRINK", 1e-6)
    mixing = torch.randn(10, 10, generator=seeded(0)) * torch.logspace(-1, 1, 10)
    x = 7 + torch.randn(5000, 10, generator=seeded(1)) @ mixing
    whiten = Whiten(10)
    whiten.fit(x)
    white = whiten(x)
    assert white.mean(0).abs().max() < 1e-2
    assert torch.allclose(torch.cov(white.T), torch.eye(10), atol=0.02)


def test_whitening_shrinks_a_direction_without_variance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two equal channels: their difference is scaled by the mean variance, not divided by nothing."""
    monkeypatch.setattr(module, "SHRINK", 0.01)
    x = torch.randn(2000, 4, generator=seeded(0))
    x[:, 3] = x[:, 0]
    whiten = Whiten(4)
    whiten.fit(x)
    assert whiten(x).abs().max() < 10
    step = whiten(x + torch.tensor([0.1, 0.0, 0.0, -0.1])) - whiten(x)
    # The correlation matrix has mean eigenvalue 1, so the step of length 0.1·√2 grows by 1/√0.01.
    assert torch.allclose(step.norm(dim=1), torch.full((2000,), 2**0.5), rtol=0.05)


def test_directions_have_one_sign_whatever_the_library_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(500, 6, generator=torch.Generator().manual_seed(0)) * torch.arange(1, 7)
    found = []
    for sign in (1, -1):
        taken = torch.linalg.eigh

        def turned(matrix: torch.Tensor, sign: int = sign, taken: object = taken) -> tuple[torch.Tensor, torch.Tensor]:
            values, vectors = taken(matrix)  # type: ignore[operator]
            return values, vectors * sign

        with monkeypatch.context() as patch:
            patch.setattr(torch.linalg, "eigh", turned)
            whiten, planes = Whiten(6), Planes(2, 3, 6)
            whiten.fit(x)
            planes.fit(whiten(x), torch.Generator().manual_seed(1))
            found.append((whiten.weight, planes.directions))
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)
