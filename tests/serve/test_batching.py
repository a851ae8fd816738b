"""Batches, with a function in place of the network that waits when told to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fcdd.serve.batching import Array, Batcher


class Network:
    """Answers each image with its first value; holds every batch until `go` is set."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.batches: list[int] = []

    def __call__(self, arrays: Sequence[Array]) -> list[Any]:
        assert self.go.wait(10)
        if any(array[0, 0, 0] == 255 for array in arrays):
            raise ValueError("a defect of the program")
        return [int(array[0, 0, 0]) for array in arrays]


def image(value: int) -> Array:
    return np.full((2, 2, 3), value, np.uint8)


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_what_gathers_while_workers_are_busy_is_the_next_batch() -> None:
    async def main() -> None:
        network = Network()
        batcher = Batcher(network, 4, 1, network.batches.append)
        first = asyncio.create_task(batcher.predict(image(0)))
        await settled()
        others = [asyncio.create_task(batcher.predict(image(value))) for value in range(1, 8)]
        await settled()
        network.go.set()
        assert await asyncio.gather(first, *others) == list(range(8))
        assert network.batches == [1, 4, 3]
        await batcher.close()

    asyncio.run(main())


def test_free_workers_share_what_waits() -> None:
    async def main() -> None:
        network = Network()
        network.go.set()
        batcher = Batcher(network, 8, 2, network.batches.append)
        assert await asyncio.gather(*(batcher.predict(image(value)) for value in range(6))) == list(range(6))
        assert network.batches == [3, 3]
        await batcher.close()

    asyncio.run(main())


def test_who_gives_up_leaves_the_queue() -> None:
    async def main() -> None:
        network = Network()
        batcher = Batcher(network, 4, 1, network.batches.append)
        first, second, third = (asyncio.create_task(batcher.predict(image(value))) for value in range(3))
        await settled()
        fourth = asyncio.create_task(batcher.predict(image(3)))
        fifth = asyncio.create_task(batcher.predict(image(4)))
        await settled()
        fourth.cancel()
        second.cancel()
        await settled()
        network.go.set()
        assert await asyncio.gather(first, third, fifth) == [0, 2, 4]
        assert network.batches == [3, 1]
        await batcher.close()

    asyncio.run(main())


def test_a_failure_reaches_its_batch_alone() -> None:
    async def main() -> None:
        network = Network()
        network.go.set()
        batcher = Batcher(network, 2, 1, network.batches.append)
        with pytest.raises(ValueError, match="defect"):
            await batcher.predict(image(255))
        assert await batcher.predict(image(7)) == 7
        await batcher.close()

    asyncio.run(main())


def test_closing_finishes_what_was_taken() -> None:
    async def main() -> None:
        network = Network()
        batcher = Batcher(network, 2, 1, network.batches.append)
        taken = [asyncio.create_task(batcher.predict(image(value))) for value in range(5)]
        await settled()
        closing = asyncio.create_task(batcher.close())
        await settled()
        assert not closing.done()
        network.go.set()
        await closing
        await settled()
        assert [task.result() for task in taken] == list(range(5))

    asyncio.run(main())
