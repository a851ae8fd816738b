"""The paper's fully convolutional networks φ and the variants of its receptive-field study."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from fcdd.nn.fields import Field, receptive_field
from fcdd.registry import Registry

# What the authors set in their small networks; the VGG nets keep torch's defaults, as torchvision's do.
NORM_EPS = 1e-4
LEAK = 0.01


NETWORKS: Registry[Callable[..., FCN]] = Registry("network of the paper", "fcdd.nn")


class FCN(nn.Module):
    """`features` followed by a 1×1 convolution: images (N, C, H, W) → φ (N, d, h, w), d = 1 in the paper.

    The bias of the last convolution is the centre of the hypersphere (the paper's footnote 1).
    """

    def __init__(
        self,
        features: nn.Sequential,
        width: int,
        channels: int,
        size: int,
        dimensions: int = 1,
        standardise: bool = False,
    ) -> None:
        """`standardise` puts a norm before and after `features` that have none of their own."""
        super().__init__()
        self.entry = nn.BatchNorm2d(channels, affine=False) if standardise else nn.Identity()
        self.features = features
        self.norm = nn.BatchNorm2d(width) if standardise else nn.Identity()
        self.head = nn.Conv2d(width, dimensions, 1)
        self.channels = channels  # of the input
        self.size = size  # side of the input that the paper uses; others work as well
        self.field: Field = receptive_field([features, self.head])
        self._frozen = 0

    def embed(self, images: Tensor) -> Tensor:
        """Images (N, C, H, W) → what the last convolution sees of each cell, (N, width, h, w)."""
        if images.shape[1] != self.channels or min(images.shape[2:]) < self.field.stride:
            raise ValueError(
                f"input {tuple(images.shape)}: the network takes (N, {self.channels}, H, W) with sides of at least "
                f"{self.field.stride} px"
            )
        seen: Tensor = self.norm(self.features(self.entry(images)))
        return seen

    def forward(self, images: Tensor) -> Tensor:
        phi: Tensor = self.head(self.embed(images))
        return phi

    def freeze(self, stages: int) -> None:
        """Fix the first `stages` of `features`, each ended by a pooling or by the end; their norms no longer learn."""
        pools = [i for i, layer in enumerate(self.features) if isinstance(layer, nn.MaxPool2d)]
        ends = [0, *(i + 1 for i in pools), len(self.features)]
        if not 0 <= stages < len(ends):
            raise ValueError(f"freeze {stages}: the network has {len(ends) - 1} stages")
        self._frozen = ends[stages]
        self.features[: self._frozen].requires_grad_(False)

    def train(self, mode: bool = True) -> FCN:
        super().train(mode)
        self.features[: self._frozen].eval()
        return self


@NETWORKS.register("fmnist")
def fmnist(dimensions: int = 1) -> FCN:
    """1×28×28 → 7×7; 413,441 parameters, receptive field 16."""
    features = nn.Sequential(
        *_block(1, 128, 5),
        nn.MaxPool2d(2),
        nn.Conv2d(128, 128, 5, padding=2),
        nn.MaxPool2d(2),
    )
    return FCN(features, 128, channels=1, size=28, dimensions=dimensions)


@NETWORKS.register("cifar")
def cifar(dimensions: int = 1) -> FCN:
    """3×32×32 → 8×8; 1,185,281 parameters, receptive field 22."""
    features = nn.Sequential(
        *_block(3, 128, 3),
        nn.MaxPool2d(2),
        *_block(128, 256, 3),
        *_block(256, 256, 3),
        nn.MaxPool2d(2),
        nn.Conv2d(256, 128, 3, padding=1),
    )
    return FCN(features, 128, channels=3, size=32, dimensions=dimensions)


@NETWORKS.register("cifar-field")
def cifar_field(kernel: int = 3, dimensions: int = 1) -> FCN:
    """The 32 px net whose first kernel sets the receptive field: kernel + 15, so 18 … 32 for 3 … 17."""
    features = nn.Sequential(
        *_block(3, 128, _odd(kernel)),
        nn.MaxPool2d(2),
        *_block(128, 256, 3),
        nn.MaxPool2d(2),
        nn.Conv2d(256, 128, 3, padding=1),
    )
    return FCN(features, 128, channels=3, size=32, dimensions=dimensions)


@NETWORKS.register("mvtec-field")
def mvtec_field(kernel: int = 3, dimensions: int = 1) -> FCN:
    """The 224 px net whose kernels set the receptive field: 19·kernel − 4, so 53 … 243 for 3 … 13."""
    k = _odd(kernel)
    features = nn.Sequential(
        *_block(3, 32, k),
        nn.MaxPool2d(3, 2, 1),
        *_block(32, 128, k),
        nn.MaxPool2d(3, 2, 1),
        *_block(128, 256, k),
        *_block(256, 256, k),
        nn.MaxPool2d(3, 2, 1),
        nn.Conv2d(256, 128, k, padding=k // 2),
    )
    return FCN(features, 128, channels=3, size=224, dimensions=dimensions)


@NETWORKS.register("vgg11")
def vgg11(dimensions: int = 1) -> FCN:
    """3×224×224 → 28×28; 4,504,833 parameters, receptive field 62; keys as torchvision's vgg11_bn."""
    features = _vgg([64, "pool", 128, "pool", 256, 256, "pool", 512, 512], norm=True)
    return FCN(features, 512, channels=3, size=224, dimensions=dimensions)


def vgg11_whole() -> FCN:
    """All eight convolutions of VGG11-BN, 3×224×224 → 512×7×7, on which the baselines put their dense layers.

    It is no network of FCDD: its receptive field covers most of an image.
    """
    plan: list[int | str] = [64, "pool", 128, "pool", 256, 256, "pool", 512, 512, "pool", 512, 512, "pool"]
    return FCN(_vgg(plan, norm=True), 512, channels=3, size=224)


@NETWORKS.register("vgg16")
def vgg16(dimensions: int = 1) -> FCN:
    """3×224×224 → 28×28; VGG16 to conv4_3, receptive field 92; keys as torchvision's vgg16.

    Its layers have no norms, so it gets one at either end: weights made for standardised input give weak features on
    inputs in [0, 1], and φ that starts far from zero, or at it, hardly learns (docs/results/method.md).
    """
    features = _vgg([64, 64, "pool", 128, 128, "pool", 256, 256, 256, "pool", 512, 512, 512], norm=False)
    return FCN(features, 512, channels=3, size=224, dimensions=dimensions, standardise=True)


def _block(inputs: int, outputs: int, kernel: int) -> tuple[nn.Module, ...]:
    return (
        nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2),
        nn.BatchNorm2d(outputs, eps=NORM_EPS),
        nn.LeakyReLU(LEAK),
    )


def _vgg(plan: list[int | str], norm: bool) -> nn.Sequential:
    layers: list[nn.Module] = []
    inputs = 3
    for entry in plan:
        if isinstance(entry, str):
            layers.append(nn.MaxPool2d(2))
            continue
        layers.append(nn.Conv2d(inputs, entry, 3, padding=1))
        layers += [nn.BatchNorm2d(entry)] if norm else []
        # In place would overwrite the norm's output, which autograd keeps anyway: nothing is saved.
        layers.append(nn.ReLU())
        inputs = entry
    return nn.Sequential(*layers)


def _odd(kernel: int) -> int:
    if kernel < 1 or kernel % 2 == 0:
        raise ValueError(f"kernel {kernel}: an odd number is needed to keep cells aligned with pixels")
    return kernel


def parameters(module: nn.Module, trainable: bool = False) -> int:
    """Number of parameters, all or only those that training changes."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad or not trainable)


def load_features(network: FCN, tensors: dict[str, Tensor]) -> None:
    """Fill `features` from a torchvision-style state dict (`features.N.weight` …); the head keeps its random start.

    Keys past the network's last layer are ignored; a missing key or a wrong shape is a KeyError or ValueError.
    """
    own = {k: v for k, v in network.state_dict().items() if k.startswith("features.")}
    for key, value in own.items():
        if key.endswith("num_batches_tracked"):
            continue
        if key not in tensors:
            raise KeyError(key)
        if tensors[key].shape != value.shape:
            raise ValueError(f"{key} has shape {tuple(tensors[key].shape)}, expected {tuple(value.shape)}")
        with torch.no_grad():
            value.copy_(tensors[key])
