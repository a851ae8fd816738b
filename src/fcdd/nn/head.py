"""The learnt head: the paper's hypersphere on the features of a frozen trunk, cell by cell."""

from __future__ import annotations

from torch import Generator, Tensor, nn


class Head(nn.Module):
    """φ of the hypersphere, trained by gradient: whitened features (M, D) → (M, d), cell by cell."""

    SECOND = 128  # width of the second layer

    def __init__(self, channels: int, width: int, dimensions: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(channels, width),
            nn.BatchNorm1d(width),
            nn.LeakyReLU(0.1),
            nn.Linear(width, self.SECOND),
            nn.BatchNorm1d(self.SECOND),
            nn.LeakyReLU(0.1),
            nn.Linear(self.SECOND, dimensions),
        )

    def reset(self, generator: Generator) -> None:
        """Start anew with weights from `generator`, uniform within 1/√inputs as torch's own."""
        for layer in self.layers:
            if isinstance(layer, nn.BatchNorm1d):
                layer.reset_parameters()
            elif isinstance(layer, nn.Linear):
                bound = layer.in_features**-0.5
                for parameter in (layer.weight, layer.bias):
                    nn.init.uniform_(parameter, -bound, bound, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        phi: Tensor = self.layers(x)
        return phi
