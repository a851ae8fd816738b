"""The training loop of all methods: online supervision, optimiser, schedule, checkpoint and resume."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from fcdd.anomalies import synthetic
from fcdd.anomalies.confetti import confetti
from fcdd.data import Source, Split
from fcdd.data.augment import AUGMENTATIONS, TEST_TRANSFORMS
from fcdd.errors import FcddError
from fcdd.interrupt import Interrupted, stop_on_signal
from fcdd.nn.preprocess import Preprocess
from fcdd.progress import Bar, bar
from fcdd.seeds import generator_of
from fcdd.training import checkpoint, processes
from fcdd.training.checkpoint import Position
from fcdd.training.methods import METHODS, Batch, Network, method_of
from fcdd.training.recipe import Recipe

REPLACE = 0.5  # probability that a nominal sample gives its place to an auxiliary anomaly
PASS_BATCH = 256  # images at a time in a pass over the nominal set before training


class Diverged(FcddError):
    """A training whose loss is no number any more."""


@dataclass
class History:
    """What a training did: the mean loss of each epoch, and where its time went."""

    losses: list[float]
    samples: int = 0
    seconds: float = 0.0
    data_seconds: float = 0.0


@dataclass(frozen=True)
class Supply:
    """All that batches are made of: nominal images, auxiliary anomalies, and the way to the network's input.

    `anomalies` None stands for synthetic ones, drawn onto the nominal images themselves.
    """

    recipe: Recipe
    nominal: Source
    anomalies: Source | None
    anomaly_masks: Tensor | None  # (K, 1, H, W) of `anomalies`; None means all of every image
    preprocess: Preprocess

    def draw(self, indices: Tensor, generator: torch.Generator) -> Batch:
        """Online supervision: each nominal image of `indices` gives way to an anomaly with probability one half.

        Methods that learn from nominal images alone have none of it.
        """
        method = METHODS[self.recipe.method]
        replaced = torch.rand(len(indices), generator=generator) < (0 if method.nominal_only else REPLACE)
        images, masks = self._mix(indices, replaced, generator)
        if method.augmented:
            images, moved = AUGMENTATIONS[self.recipe.augment](images, masks, self.recipe.size, generator)
            assert moved is not None
            masks = moved
        else:
            images = TEST_TRANSFORMS[self.recipe.augment](images, self.recipe.size)
        images = self.preprocess(images).contiguous(memory_format=torch.channels_last)
        return method.present(Batch(images, replaced.float(), masks), generator)

    def nominal_inputs(self, quiet: bool = False) -> Iterator[Tensor]:
        """All nominal images as network input, as a test would see them, batch by batch."""
        with bar("initial pass", len(self.nominal), quiet=quiet) as shown:
            for indices in torch.arange(len(self.nominal)).split(min(PASS_BATCH, self.recipe.batch)):
                yield network_input(self.recipe, self.preprocess, self.nominal[indices])
                shown.advance(len(indices))

    def _mix(self, indices: Tensor, replaced: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        if self.anomalies is None:
            images = self.nominal[indices].float() / 255
            masks = torch.zeros(len(images), 1, *images.shape[2:], dtype=torch.uint8)
            if replaced.any():
                images[replaced], masks[replaced] = self._defected(images[replaced], generator)
            return images, masks
        chosen = torch.randint(len(self.anomalies), (int(replaced.sum()),), generator=generator)
        parts = [self.nominal[indices[~replaced]], self.anomalies[chosen]]
        images = torch.empty(len(indices), *parts[0].shape[1:])
        images[~replaced], images[replaced] = (part.float() / 255 for part in parts)
        masks = replaced.to(torch.uint8).view(-1, 1, 1, 1).expand(-1, 1, *images.shape[2:]).contiguous()
        if self.anomaly_masks is not None:
            masks[replaced] = self.anomaly_masks[chosen]
        return images, masks

    def _defected(self, images: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Synthetic anomalies of the recipe's kind on images (n, C, H, W) in [0, 1], and their masks (n, 1, H, W)."""
        if self.recipe.exposure == "confetti":
            return confetti(images, generator)
        return synthetic.mixture(images, generator, kinds=synthetic.EVERY)


def supply(recipe: Recipe, split: Split, exposure: Source | None, preprocess: Preprocess) -> Supply:
    """The batches of `recipe` on `split`; `exposure` is the auxiliary corpus where the recipe names one."""
    labelled = recipe.exposure == "labelled"
    anomalies = split.anomalies if labelled else exposure
    return Supply(recipe, split.nominal, anomalies, split.anomaly_masks if labelled else None, preprocess)


def network_input(recipe: Recipe, preprocess: Preprocess, images: Tensor) -> Tensor:
    """uint8 images (N, C, H, W) at the recipe's stored size → what the network is tested on (N, C, size, size)."""
    images = TEST_TRANSFORMS[recipe.augment](images.float() / 255, recipe.size)
    return preprocess(images).contiguous(memory_format=torch.channels_last)


def batches_of(recipe: Recipe, samples: int, seed: int, epoch: int) -> list[Tensor]:
    """The epoch's order: `passes` permutations of the nominal set, cut into batches."""
    generator = generator_of(seed, epoch)
    order = torch.cat([torch.randperm(samples, generator=generator) for _ in range(recipe.passes)])
    return list(order.split(recipe.batch))


def make_optimiser(recipe: Recipe, network: Network) -> torch.optim.Optimizer:
    parameters = [p for p in network.parameters() if p.requires_grad]
    if recipe.optimiser == "adam":
        return torch.optim.Adam(parameters, recipe.lr, weight_decay=recipe.weight_decay)
    return torch.optim.SGD(
        parameters, recipe.lr, recipe.momentum, weight_decay=recipe.weight_decay, nesterov=recipe.momentum > 0
    )


def train(
    network: Network,
    source: Supply,
    seed: int,
    checkpoint_path: Path | None = None,
    checkpoint_seconds: float = 30.0,
    quiet: bool = False,
) -> History:
    """Train `network` in place by `source.recipe` and its method.

    With `checkpoint_path` the state is saved every `checkpoint_seconds` between two steps, and an existing one is
    taken up again; the weights at the end are bit-identical to those of a run that was never stopped. Ctrl-C and
    SIGTERM save and raise `Interrupted`. Started by `accelerate launch` in several processes, each takes its share of
    every batch; the first writes the checkpoints.
    """
    recipe = source.recipe
    accelerator = processes.accelerator()
    quiet = quiet or not accelerator.is_main_process
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    method = method_of(recipe, network)
    optimiser = make_optimiser(recipe, network)
    identity = {**recipe.to_dict(), "seed": seed, "samples": len(source.nominal), **source.preprocess.to_dict()}
    identity = {k: list(v) if isinstance(v, tuple) else v for k, v in identity.items()}
    at = Position()
    if checkpoint_path is not None and checkpoint_path.exists():
        at = checkpoint.restore(checkpoint_path, network, optimiser, identity)
    else:
        method.begin(source.nominal_inputs(quiet))
    prepared, stepper = accelerator.prepare(network, optimiser)
    kept_path = checkpoint_path if accelerator.is_main_process else None
    history = History(at.losses)
    saved = time.monotonic()
    per_epoch = len(source.nominal) * recipe.passes
    done = at.epoch * per_epoch + at.step * recipe.batch
    shown_bar = bar("training", recipe.epochs * per_epoch, done, quiet=quiet)
    with stop_on_signal() as stop, processes.synchronised(network, accelerator), shown_bar as shown:
        network.train()
        for batch in _steps(source, seed, at, history, shown):
            own, weight = processes.share(batch.to(accelerator.device), accelerator)
            loss = method.loss(_output(prepared, own.images, recipe), own) * weight
            for group in optimiser.param_groups:
                group["lr"] = recipe.lr_at(at.epoch, at.step * recipe.batch / per_epoch)
            stepper.zero_grad()
            accelerator.backward(loss)
            stepper.step()
            at.total += _finite(processes.mean(loss, accelerator), recipe) * len(batch.y)
            at.step += 1
            stopping = processes.agreed(stop.is_set(), accelerator)
            if kept_path is not None and (stopping or time.monotonic() - saved >= checkpoint_seconds):
                checkpoint.save(kept_path, network, optimiser, at, identity)
                saved = time.monotonic()
            if stopping:
                raise Interrupted(f"stopped in epoch {at.epoch + 1} of {recipe.epochs}")
    if kept_path is not None:
        checkpoint.save(kept_path, network, optimiser, at, identity)
    network.eval()
    return history


def _output(network: Callable[[Tensor], Tensor], images: Tensor, recipe: Recipe) -> Tensor:
    """The network's output in float32, in which all losses are computed; its products in the recipe's precision."""
    with torch.autocast(images.device.type, torch.bfloat16, enabled=recipe.precision == "bf16"):
        return network(images).float()


def _finite(loss: float, recipe: Recipe) -> float:
    if not math.isfinite(loss):
        raise Diverged(f"the loss became {loss}: lower the learning rate (lr = {recipe.lr} now) or choose another seed")
    return loss


def _steps(source: Supply, seed: int, at: Position, history: History, shown: Bar) -> Iterator[Batch]:
    """The batches from `at` to the end of the last epoch; keeps the books between them."""
    begun = time.monotonic()
    for epoch in range(at.epoch, source.recipe.epochs):
        order = batches_of(source.recipe, len(source.nominal), seed, epoch)
        samples = sum(map(len, order))
        for step in range(at.step, len(order)):
            before = time.monotonic()
            batch = source.draw(order[step], generator_of(seed, epoch, step))
            history.data_seconds += time.monotonic() - before
            yield batch
            history.samples += len(batch.y)
            seen = sum(map(len, order[: step + 1]))
            shown.advance(len(batch.y), f"epoch {epoch + 1}/{source.recipe.epochs} loss {at.total / seen:.4f}")
        at.losses.append(at.total / samples)
        at.epoch, at.step, at.total = epoch + 1, 0, 0.0
    history.seconds = time.monotonic() - begun
