"""The bank: bounded, repeatable, only of the region of interest, and never computed twice."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import torch
from torch import Tensor

from fcdd.data import Source
from fcdd.interrupt import Interrupted
from fcdd.nn.architecture import Architecture
from fcdd.nn.centres import places
from fcdd.nn.description import Description
from fcdd.seeds import generator_of
from fcdd.training import bank
from fcdd.training.lesson import Lesson

HEIGHT, WIDTH = 48, 64
CELLS = (HEIGHT // 8) * (WIDTH // 8)
EVERYWHERE = torch.ones(CELLS, dtype=torch.bool)
IMAGES = bank.SHARD + 8  # two shards


class Reading:
    """Images that remember which of them were read, and may send a Ctrl-C when one is."""

    def __init__(self, images: Tensor, interrupt_at: int | None = None) -> None:
        self.images, self.interrupt_at, self.read = images, interrupt_at, set[int]()

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, indices: Tensor, /) -> Tensor:
        self.read |= set(indices.tolist())
        if self.interrupt_at in indices.tolist():
            os.kill(os.getpid(), signal.SIGINT)
        return self.images[indices]


@pytest.fixture(scope="module")
def description() -> Description:
    made = Description(Architecture(planes=2, directions=1)).eval()
    made.trunk.load()
    return made


@pytest.fixture(scope="module")
def images() -> Tensor:
    noise = torch.rand(IMAGES, 3, HEIGHT // 4, WIDTH // 4, generator=generator_of(0, "images"))
    return (255 * noise).to(torch.uint8).repeat_interleave(4, 2).repeat_interleave(4, 3)


def gather(
    description: Description,
    good: Source,
    inside: Tensor,
    vectors: int,
    seed: int = 0,
    work: Path | None = None,
    identity: dict[str, object] | None = None,
) -> Tensor:
    """The bank's features."""
    height, width = good[torch.tensor([0])].shape[2:] if isinstance(good, Tensor) else (HEIGHT, WIDTH)
    lesson = Lesson((), good, (height, width), inside, seed, vectors, work=work, identity=identity or {})
    return bank.gather(description, good, lesson).features


def stamps(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("shard-bank-*")}


@pytest.mark.parametrize("vectors", [200, 1000])
def test_the_bank_has_about_as_many_vectors_as_asked_whatever_the_images(
    description: Description, images: Tensor, vectors: int
) -> None:
    for count in (12, IMAGES):
        found = gather(description, images[:count], EVERYWHERE, vectors, seed=0)
        assert found.shape[1] == sum(description.trunk.widths)
        assert vectors <= len(found) <= vectors + 2 * count
        assert len(found) % count == 0  # evenly many of each


def test_no_cell_is_taken_twice_from_a_view(description: Description, images: Tensor) -> None:
    found = gather(description, images[:2], EVERYWHERE, 10**6, seed=0)
    assert len(found) <= 2 * 2 * CELLS
    assert len(found.unique(dim=0)) == len(found)


def test_features_are_those_of_the_images_themselves(description: Description, images: Tensor) -> None:
    found = gather(description, images[:3], EVERYWHERE, 10**6, seed=0)
    with torch.inference_mode():
        cells = description.features(images[:3].float()).flatten(2).transpose(1, 2).flatten(0, 1)
    assert torch.cdist(cells, found).amin(1).max() < 1e-2 * cells.norm(dim=1).mean()


def test_a_seed_repeats_and_another_differs(description: Description, images: Tensor) -> None:
    first, again, other = (gather(description, images[:8], EVERYWHERE, 100, seed) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_only_cells_inside_the_region_of_interest_are_taken(description: Description) -> None:
    """Flat on the left, noise on the right: what is taken from far left looks flat, from far right noisy."""
    wide = 192
    pictures = torch.full((6, 3, HEIGHT, wide), 120, dtype=torch.uint8)
    noise = torch.randint(0, 256, (6, 3, HEIGHT, wide // 2), generator=generator_of(0, "noise"))
    pictures[..., wide // 2 :] = noise.to(torch.uint8)
    left = torch.zeros(HEIGHT // 8, wide // 8, dtype=torch.bool)
    left[:, :5] = True  # the fields of the cells end before the noise begins
    flat, rough = (gather(description, pictures, inside.flatten(), 300, seed=0) for inside in (left, left.flip(1)))
    with torch.inference_mode():
        features = description.features(pictures.float())
    means = torch.stack([features[..., :5].mean((0, 2, 3)), features[..., -5:].mean((0, 2, 3))])
    assert (torch.cdist(flat, means).argmin(1) == 0).all()
    assert (torch.cdist(rough, means).argmin(1) == 1).all()


def test_finished_shards_are_not_computed_again(description: Description, images: Tensor, tmp_path: Path) -> None:
    work = tmp_path / "work"
    plain = gather(description, images, EVERYWHERE, 500, 0)
    first = gather(description, images, EVERYWHERE, 500, 0, work, {"run": 1})
    assert torch.equal(first, plain)
    before = stamps(work)
    assert len(before) == 2
    again = Reading(images)
    assert torch.equal(gather(description, again, EVERYWHERE, 500, 0, work, {"run": 1}), first)
    assert stamps(work) == before
    assert again.read == set()


def test_a_missing_shard_alone_is_computed(description: Description, images: Tensor, tmp_path: Path) -> None:
    first = gather(description, images, EVERYWHERE, 500, 0, tmp_path, {"run": 1})
    before = stamps(tmp_path)
    lost = max(before)
    (tmp_path / lost).unlink()
    again = Reading(images)
    assert torch.equal(gather(description, again, EVERYWHERE, 500, 0, tmp_path, {"run": 1}), first)
    assert again.read == set(range(bank.SHARD, IMAGES))
    assert {name for name, stamp in stamps(tmp_path).items() if stamp == before[name]} == set(before) - {lost}


def test_shards_of_another_training_are_thrown_away(description: Description, images: Tensor, tmp_path: Path) -> None:
    work = tmp_path / "work"
    gather(description, images, EVERYWHERE, 500, 0, work, {"good": "a"})
    others = Reading(images.flip(0)[:10])
    found = gather(description, others, EVERYWHERE, 500, 0, work, {"good": "b"})
    assert others.read == set(range(10))
    assert len(stamps(work)) == 1
    assert torch.equal(found, gather(description, others, EVERYWHERE, 500, 0))


def test_ctrl_c_keeps_the_finished_shards_and_the_next_call_goes_on(
    description: Description, images: Tensor, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    stopped = Reading(images, interrupt_at=1)
    with pytest.raises(Interrupted, match=f"stopped after {bank.SHARD} of {IMAGES} images"):
        gather(description, stopped, EVERYWHERE, 500, 0, work, {"run": 1})
    assert stopped.read == set(range(bank.SHARD))
    resumed = Reading(images)
    found = gather(description, resumed, EVERYWHERE, 500, 0, work, {"run": 1})
    assert resumed.read == set(range(bank.SHARD, IMAGES))
    assert torch.equal(found, gather(description, images, EVERYWHERE, 500, 0))


def test_coarse_features_come_with_their_places(images: Tensor) -> None:
    network = Description(Architecture(planes=2, directions=1, centres=4)).eval()
    network.trunk.load()
    inside = EVERYWHERE.view(HEIGHT // 8, WIDTH // 8).clone()
    inside[:, : WIDTH // 16] = False  # the right half alone
    found = bank.gather(network, images[:3], Lesson((), images[:3], (HEIGHT, WIDTH), inside.flatten(), 0, 1000))
    with torch.inference_mode():
        coarse = network.features(images[:3].float(), coarse=True)
    grid = places(*coarse.shape[2:])
    cells = torch.cdist(found.where, grid).argmin(1)
    assert torch.equal(grid[cells], found.where)
    assert (cells % coarse.shape[3] >= coarse.shape[3] // 2).all()
    at_place = coarse.flatten(2)[:, :, cells].transpose(1, 2)  # (3, K, C)
    assert ((at_place - found.coarse).norm(dim=2).amin(0) < 0.2 * found.coarse.norm(dim=1).mean()).float().mean() > 0.5
