"""Speed of the paper's method in one run: `make bench`.

Training through the whole loop against the bare forward and backward pass of the same network, the data pipeline's
share of the time, the streaming pixel AUROC against scikit-learn, and the peak memory of it all.
"""

from __future__ import annotations

import resource
import time
from pathlib import Path

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

from fcdd.metrics import PixelHistogram
from fcdd.nn import objectives
from fcdd.nn.preprocess import fit
from fcdd.training import loop, recipe
from fcdd.training.methods import build

# recipe, images a batch (0: the recipe's), batches a turn, turns: turns of both kinds alternate, so that a noisy
# neighbour hits both alike. MVTec's own batch of 128 would take minutes a turn on a CPU.
PLAN = [("fmnist", 0, 6, 4), ("cifar10", 0, 2, 4), ("mvtec", 16, 3, 4)]


def bare(network: torch.nn.Module, images: torch.Tensor, y: torch.Tensor, steps: int) -> float:
    """Seconds for `steps` forward and backward passes and nothing else."""
    begun = time.perf_counter()
    for _ in range(steps):
        network.zero_grad()
        objectives.fcdd(objectives.pseudo_huber(network(images)), y).backward()
    return time.perf_counter() - begun


def network_row(name: str, batch: int, steps: int, turns: int, precision: str = "float32") -> str:
    """A line of the table: the speed of one recipe's network, bare (always in float32) and through the loop."""
    changes = {"epochs": 1, "passes": 1, "precision": precision, **({"batch": batch} if batch else {})}
    chosen = recipe.load(name, changes)
    network = build(chosen).train()
    shape = (chosen.batch * steps, network.channels, chosen.stored, chosen.stored)
    nominal = torch.randint(0, 256, shape, dtype=torch.uint8)
    exposure = None if chosen.exposure == "confetti" else nominal.flip(0)
    source = loop.Supply(chosen, nominal, exposure, None, fit(chosen.preprocess, nominal))
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    drawn = source.draw(torch.arange(chosen.batch), torch.Generator().manual_seed(0))
    bare(network, drawn.images, drawn.y, 1)
    bare_seconds = loop_seconds = data_seconds = 0.0
    for turn in range(turns):
        bare_seconds += bare(network, drawn.images, drawn.y, steps)
        history = loop.train(network, source, seed=turn, quiet=True)
        network.train()
        loop_seconds += history.seconds
        data_seconds += history.data_seconds
    samples = turns * len(nominal)
    return (
        f"| {name} | {precision} | {chosen.batch} | {samples / bare_seconds:.1f} | {samples / loop_seconds:.1f} "
        f"| {bare_seconds / loop_seconds:.3f} | {data_seconds / loop_seconds:.1%} |"
    )


def auroc_row(images: int = 25, side: int = 900) -> str:
    """Seconds of the streaming pixel AUROC beside scikit-learn's on the same pixels."""
    random = np.random.default_rng(0)
    scores = [random.gamma(2.0, 0.1, (side, side)).astype(np.float32) for _ in range(images)]
    masks = [random.random((side, side)) < 0.02 for _ in range(images)]
    for score, mask in zip(scores, masks, strict=True):
        score[mask] += 0.1
    begun = time.perf_counter()
    histogram = PixelHistogram()
    for score, mask in zip(scores, masks, strict=True):
        histogram.update(score, mask)
    ours = histogram.auroc()
    our_seconds = time.perf_counter() - begun
    begun = time.perf_counter()
    theirs = roc_auc_score(np.concatenate(masks).ravel(), np.concatenate(scores).ravel())
    their_seconds = time.perf_counter() - begun
    return (
        f"pixel AUROC of {images * side * side / 1e6:.1f} M pixels: {our_seconds:.3f} s, scikit-learn "
        f"{their_seconds:.2f} s, {their_seconds / our_seconds:.0f}×; difference {abs(ours - theirs):.1e}"
    )


def fast_bf16() -> bool:
    """Whether the processor multiplies bfloat16 itself; elsewhere it is slower than float32."""
    path = Path("/proc/cpuinfo")
    return path.is_file() and bool({"avx512_bf16", "amx_bf16"} & set(path.read_text().split()))


def memory() -> str:
    """The most memory the process has held so far."""
    return f"peak memory so far: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB"


def main() -> None:
    """Print the whole benchmark."""
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads\n")
    heading = ["recipe", "precision", "batch", "bare images/s", "training images/s", "ratio", "data share"]
    print(f"| {' | '.join(heading)} |\n|{'---|' * len(heading)}")
    for precision in ("float32", *(["bf16"] if fast_bf16() else [])):
        for row in PLAN:
            print(network_row(*row, precision), flush=True)
    print(f"\n{memory()}\n{auroc_row()}\n{memory()}")


if __name__ == "__main__":
    main()
