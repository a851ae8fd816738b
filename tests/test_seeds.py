"""Random streams by key."""

from __future__ import annotations

import subprocess
import sys

import torch

from fcdd.seeds import generator_of


def draw(*key: int | str) -> list[int]:
    return torch.randint(1 << 30, (4,), generator=generator_of(*key)).tolist()


def test_a_key_repeats_and_every_other_key_draws_otherwise() -> None:
    keys: list[tuple[int | str, ...]] = [
        (0,),
        (1,),
        (0, 0),
        (0, 1),
        (1, 0),
        (0, "bank"),
        (0, "bank", 7),
        ("bank", 0),
        (12,),
        (1, 2),
    ]
    streams = [draw(*key) for key in keys]
    assert streams == [draw(*key) for key in keys]
    assert len({tuple(stream) for stream in streams}) == len(keys)


def test_a_stream_is_the_same_in_another_process() -> None:
    """Python's own hash of strings differs from process to process; a resumed run must not notice."""
    code = (
        "import torch; from fcdd.seeds import generator_of;"
        "print(torch.randint(1 << 30, (4,), generator=generator_of(3, 'epoch', 7)).tolist())"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert told.strip() == str(draw(3, "epoch", 7))


def test_the_global_stream_is_left_alone() -> None:
    before = torch.random.get_rng_state()
    draw(5, "x")
    assert torch.equal(torch.random.get_rng_state(), before)
