"""One training in several processes, as `accelerate launch` or torchrun start them.

Every process draws the same batch and takes its share of it, so that the number of processes changes nothing but the
time: the gradient is that of the mean over the whole batch, and batch norms take their statistics over the whole batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
from accelerate import Accelerator
from torch import Tensor, distributed
from torch.autograd.function import FunctionCtx
from torch.nn.modules.batchnorm import _BatchNorm

from fcdd.training.methods import Batch, Network


def accelerator() -> Accelerator:
    """The devices and processes of this run. Without a GPU it has to be told so, or each process would train alone."""
    return Accelerator(cpu=not torch.accelerator.is_available())


def share(batch: Batch, accelerator: Accelerator) -> tuple[Batch, float]:
    """This process's samples and the weight of their loss: the mean of the weighted losses is that of the whole batch.

    All objectives are means over samples, so n of N samples weigh n · processes / N. A batch with fewer samples than
    processes goes to all of them whole, with weight one: no process may be without a part in the gradient.
    """
    processes = accelerator.num_processes
    if processes == 1 or len(batch.y) < processes:
        return batch, 1.0
    own = slice(accelerator.process_index, None, processes)
    images = batch.images[own].contiguous(memory_format=torch.channels_last)
    return Batch(images, batch.y[own], batch.masks[own]), len(images) * processes / len(batch.y)


def mean(value: Tensor, accelerator: Accelerator) -> float:
    """The mean of a scalar over processes."""
    if accelerator.num_processes == 1:
        return value.item()
    reduced: Tensor = accelerator.reduce(value.detach(), reduction="mean")
    return reduced.item()


def agreed(wish: bool, accelerator: Accelerator) -> bool:
    """Whether any process wishes it: a signal may reach only one, and the others must not wait for it forever."""
    return mean(torch.tensor(float(wish), device=accelerator.device), accelerator) > 0


@contextmanager
def synchronised(network: Network, accelerator: Accelerator) -> Iterator[None]:
    """Let the network's batch norms, where they learn, take their statistics over the batches of all processes.

    torch's SyncBatchNorm does the same on GPUs only.
    """
    norms = [module for module in network.modules() if isinstance(module, _BatchNorm)]
    if accelerator.num_processes == 1:
        norms = []
    for norm in norms:
        norm.__dict__["forward"] = partial(_norm, norm)
    try:
        yield
    finally:
        for norm in norms:
            del norm.__dict__["forward"]


class _Sum(torch.autograd.Function):
    """The sum of a tensor over processes. Each enters all sums with factor one, so gradients are summed alike."""

    @staticmethod
    def forward(ctx: FunctionCtx, own: Tensor) -> Tensor:
        total = own.clone()
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: FunctionCtx, slope: Tensor) -> Tensor:
        return _Sum.forward(ctx, slope)


def _total(own: Tensor) -> Tensor:
    total: Tensor = _Sum.apply(own)  # type: ignore[no-untyped-call]
    return total


def _norm(norm: _BatchNorm, x: Tensor) -> Tensor:
    """(x − μ) / √(σ² + ε) · γ + β, with mean and variance per channel over the samples of all processes."""
    if not norm.training:
        usual: Tensor = type(norm).forward(norm, x)
        return usual
    dims = [0, *range(2, x.dim())]
    shape = (1, -1) + (1,) * (x.dim() - 2)
    count = x.new_tensor([x.numel() / x.shape[1]])
    totals = _total(torch.cat([x.sum(dims), count]))
    samples = totals[-1].detach()
    mu = totals[:-1] / samples
    centred = x - mu.view(shape)
    variance = _total(centred.square().sum(dims)) / samples
    _remember(norm, mu.detach(), variance.detach() * samples / (samples - 1).clamp(min=1))
    scaled = centred * torch.rsqrt(variance + norm.eps).view(shape)
    if norm.weight is not None:
        scaled = scaled * norm.weight.view(shape)
    return scaled if norm.bias is None else scaled + norm.bias.view(shape)


def _remember(norm: _BatchNorm, mu: Tensor, variance: Tensor) -> None:
    """Move the running statistics as torch's norm does."""
    if norm.running_mean is None or norm.running_var is None or norm.num_batches_tracked is None:
        return
    norm.num_batches_tracked.add_(1)
    step = 1 / norm.num_batches_tracked.item() if norm.momentum is None else norm.momentum
    norm.running_mean.lerp_(mu, step)
    norm.running_var.lerp_(variance, step)
