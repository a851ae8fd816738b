"""FCDD and the methods the paper compares it with, behind one face: a network, a loss, a score and a heatmap."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Generic, TypeVar

import torch
from torch import Generator, Tensor

from fcdd.errors import FcddError, RecipeError
from fcdd.nn import attribution, networks, objectives
from fcdd.nn.attribution import Score
from fcdd.nn.baselines import Autoencoder, Dense
from fcdd.nn.fcn import FCN
from fcdd.nn.upsampling import upsample
from fcdd.training import geometry
from fcdd.training.losses import LOSSES
from fcdd.training.recipe import Recipe

Network = FCN | Dense | Autoencoder
N = TypeVar("N", FCN, Dense, Autoencoder)

AWAY = 0.1  # least distance of each coordinate of a fixed centre from 0, which a network without bias reaches for free
COLLAPSED = 1e-6  # outputs whose spread is this part of their size coincide in float32
PIXELS = 2**20  # at a time, where gradients are needed: bounds the memory of what autograd keeps
UNSURE = 0.5  # weight of Outlier Exposure in GEO+, as its authors set it
SPAN = {"lcn": 1.0, "none": 1.0, "standard": 4.0}  # of preprocessed values; an image in [0, 1] has a deviation near ¼


class Collapse(FcddError):
    """A one-class network that gives the same output for every image."""


@dataclass(frozen=True)
class Batch:
    """images (n, C, H, W) as the network takes them; y (n,) in {0, 1}; masks (n, 1, H, W) uint8, 1 where anomalous.

    For geo and geo+, y is the index of the transformation that was applied.
    """

    images: Tensor
    y: Tensor
    masks: Tensor

    def to(self, device: torch.device) -> Batch:
        return Batch(self.images.to(device), self.y.to(device), self.masks.to(device))


@dataclass(frozen=True)
class Method(ABC, Generic[N]):
    """A way to learn and to score by `network`. Higher scores are more anomalous; images are network input."""

    recipe: Recipe
    network: N

    nominal_only: ClassVar[bool] = False  # no auxiliary anomalies join training
    pretrainable: ClassVar[bool] = True  # the recipe's ImageNet weights and its freezing apply
    augmented: ClassVar[bool] = True  # the recipe's augmentation applies

    @staticmethod
    @abstractmethod
    def build(recipe: Recipe) -> Network:
        """The network with fresh weights."""

    @staticmethod
    def present(batch: Batch, generator: Generator) -> Batch:
        """What the network is shown of a batch; one and the same unless a method has a task of its own."""
        return batch

    def begin(self, nominal: Iterable[Tensor]) -> None:
        """Before the first step; `nominal` are all training images, batch by batch, read only if asked for."""
        return

    @abstractmethod
    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        """The scalar that training minimises; `output` is the network's on the batch's images."""

    @abstractmethod
    def scores(self, images: Tensor) -> Tensor:
        """(N, C, H, W) → (N,)."""

    @abstractmethod
    def explain(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """(N, C, H, W) → scores (N,) and heatmaps (N, 1, H, W) ≥ 0."""

    def _smooth(self, maps: Tensor) -> Tensor:
        """Blurred by the kernel of the recipe's FCDD network, where the recipe wants that."""
        size = networks.field_size(self.recipe.network, self.recipe.kernel)
        return attribution.blur(maps, self.recipe.sigma, size) if self.recipe.blur else maps


@dataclass(frozen=True)
class Fcdd(Method[FCN]):
    """The paper's method: the map A of a fully convolutional network is the explanation, its mean the score."""

    @staticmethod
    def build(recipe: Recipe) -> FCN:
        options = {"dimensions": recipe.dimensions, **({"kernel": recipe.kernel} if recipe.kernel else {})}
        network = networks.build(recipe.network, **options)
        network.freeze(recipe.freeze)
        return network

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        """The recipe's objective, one of fcdd.training.losses."""
        A = objectives.pseudo_huber(output)
        return LOSSES[self.recipe.objective].of(A, lambda: self.full(A), batch)

    def full(self, A: Tensor, sigma: float | None = None) -> Tensor:
        """A (N, 1, h, w) → A′ (N, 1, size, size)."""
        return upsample(A, self.network.field, self.recipe.size, sigma or self.recipe.sigma)

    def A(self, images: Tensor) -> Tensor:
        return objectives.pseudo_huber(self.network(images))

    def scores(self, images: Tensor) -> Tensor:
        return self.A(images).flatten(1).mean(1)

    def explain(self, images: Tensor) -> tuple[Tensor, Tensor]:
        A = self.A(images)
        return A.flatten(1).mean(1), self.full(A)


@dataclass(frozen=True)
class Reconstruction(Method[Autoencoder]):
    """An autoencoder: what it cannot reconstruct is anomalous."""

    nominal_only: ClassVar[bool] = True
    pretrainable: ClassVar[bool] = False

    @staticmethod
    def build(recipe: Recipe) -> Autoencoder:
        return networks.build_autoencoder(_size(recipe))

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        return self._errors(output, batch.images)[0].mean()

    def scores(self, images: Tensor) -> Tensor:
        return self._errors(self.network(images), images)[0]

    def explain(self, images: Tensor) -> tuple[Tensor, Tensor]:
        scores, maps = self._errors(self.network(images), images)
        return scores, self._smooth(maps)

    def _errors(self, output: Tensor, images: Tensor) -> tuple[Tensor, Tensor]:
        return attribution.reconstruction(output, images, self.recipe.reconstruction, SPAN[self.recipe.preprocess])


@dataclass(frozen=True)
class Embedding(Method[Dense]):
    """Methods that score a vector φ; the attribution of the score to the pixels is their heatmap."""

    outputs: ClassVar[int] = 0  # of the dense layer; 0 for the usual number at the recipe's size

    @classmethod
    def build(cls, recipe: Recipe) -> Dense:
        options = {"kernel": recipe.kernel} if recipe.kernel else {}
        network = networks.build_dense(recipe.network, _size(recipe), cls.outputs, bias=cls.pretrainable, **options)
        network.freeze(recipe.freeze if cls.pretrainable else 0)
        return network

    @abstractmethod
    def parts(self) -> list[Score]:
        """Functions of images whose mean is the score."""

    def scores(self, images: Tensor) -> Tensor:
        return torch.stack([part(images) for part in self.parts()]).mean(0)

    def explain(self, images: Tensor) -> tuple[Tensor, Tensor]:
        chunk = max(1, PIXELS // images[0, 0].numel())
        scores, maps = zip(*(self._explain(some) for some in images.split(chunk)), strict=True)
        return torch.cat(scores), self._smooth(torch.cat(maps))

    def _explain(self, images: Tensor) -> tuple[Tensor, Tensor]:
        way = attribution.gradient if self.recipe.attribution == "gradient" else attribution.integrated_gradients
        # One part at a time: the attribution is linear in the score, and autograd keeps only one part's activations.
        scores, slopes = torch.zeros(()), torch.zeros(())
        parts = self.parts()
        for part in parts:
            one, slope = way(part, images)
            scores, slopes = scores + one / len(parts), slopes + slope / len(parts)
        return scores, attribution.heat(slopes)


@dataclass(frozen=True)
class Hsc(Embedding):
    """Hypersphere classification (eq. 1), of which FCDD is the fully convolutional form."""

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        return objectives.hsc(output, batch.y)

    def parts(self) -> list[Score]:
        return [lambda images: objectives.pseudo_huber(self.network(images)).squeeze(1)]


@dataclass(frozen=True)
class Svdd(Embedding):
    """One-class Deep SVDD: distance to a fixed centre, the mean output of the untrained network without bias."""

    nominal_only: ClassVar[bool] = True
    pretrainable: ClassVar[bool] = False

    def begin(self, nominal: Iterable[Tensor]) -> None:
        """The initial pass, with the statistics of each batch in the norms, as in training."""
        self.network.train()
        total, count = torch.zeros_like(self.network.centre), 0
        with torch.no_grad():
            for images in nominal:
                total += self.network(images).sum(0)
                count += len(images)
        centre = total / count
        near = torch.where(centre < 0, -AWAY, AWAY)
        self.network.centre.copy_(torch.where(centre.abs() < AWAY, near, centre))

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        self._refuse_collapse(output)
        return objectives.deep_svdd(output, self.network.centre)

    def parts(self) -> list[Score]:
        return [lambda images: (self.network(images) - self.network.centre).square().sum(1)]

    def _refuse_collapse(self, phi: Tensor) -> None:
        spread = (phi.detach() - phi.detach()[:1]).abs().max()
        if len(phi) > 1 and spread <= COLLAPSED * phi.detach().abs().max():
            raise Collapse(
                f"the network gives all {len(phi)} images of a batch the same output, so it tells nothing apart; "
                f"lower the learning rate (lr = {self.recipe.lr} now) or choose another seed"
            )


@dataclass(frozen=True)
class Sad(Svdd):
    """Deep SAD: Deep SVDD that also pushes auxiliary anomalies away from the centre."""

    nominal_only: ClassVar[bool] = False

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        self._refuse_collapse(output)
        return objectives.deep_sad(output, self.network.centre, batch.y)


@dataclass(frozen=True)
class Focal(Embedding):
    """A binary classifier of nominal images against auxiliary anomalies with focal loss; its logit is the score."""

    outputs: ClassVar[int] = 1

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        return objectives.focal(output.squeeze(1), batch.y)

    def parts(self) -> list[Score]:
        return [lambda images: self.network(images).squeeze(1)]


@dataclass(frozen=True)
class Geo(Embedding):
    """A classifier of geometric transformations: where it mistakes them, the image is unlike the nominal ones.

    The score is the mean of −log p over all transformations, each asked for on its own view. Augmentation is left
    out: a random reflection would make the reflections indistinguishable.
    """

    nominal_only: ClassVar[bool] = True
    augmented: ClassVar[bool] = False
    outputs: ClassVar[int] = geometry.COUNT

    @staticmethod
    def present(batch: Batch, generator: Generator) -> Batch:
        images, index = geometry.transform_each(batch.images, generator)
        return replace(batch, images=images, y=index)

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        return objectives.transformation(output, batch.y).mean()

    def parts(self) -> list[Score]:
        return [partial(self._part, index=index) for index in range(geometry.COUNT)]

    def _part(self, images: Tensor, index: int) -> Tensor:
        logits = self.network(geometry.transform(images, index))
        return objectives.transformation(logits, torch.full((len(logits),), index, device=logits.device))


@dataclass(frozen=True)
class GeoPlus(Embedding):
    """GEO+ (Hendrycks et al., 2019): one network, three heads that say the turn and the two shifts of an image.

    The score is the mean over all combinations of the sum of −log p of the three right answers. With Outlier Exposure
    (`GeoPlusExposed`) the heads learn to be unsure of it: cross-entropy to the uniform distribution, with weight ½.
    """

    nominal_only: ClassVar[bool] = True
    augmented: ClassVar[bool] = False
    outputs: ClassVar[int] = sum(geometry.HEADS)

    @staticmethod
    def present(batch: Batch, generator: Generator) -> Batch:
        """y becomes the combination of an image, or −1 for an auxiliary anomaly, whose combination is no matter."""
        images, index = geometry.transform_each(batch.images, generator, geometry.COMBINED, geometry.combined)
        return replace(batch, images=images, y=torch.where(batch.y > 0, torch.full_like(index, -1), index))

    def loss(self, output: Tensor, batch: Batch) -> Tensor:
        """The mean over samples of the three cross-entropies."""
        nominal = batch.y >= 0
        each = torch.zeros_like(output[:, 0])
        index = batch.y.clamp(min=0)
        right = torch.tensor([geometry.answers(one) for one in range(geometry.COMBINED)], device=output.device)[index]
        for head, answer in zip(output.split(geometry.HEADS, 1), right.unbind(1), strict=True):
            wrong = objectives.transformation(head, answer)
            each = each + torch.where(nominal, wrong, UNSURE * objectives.unsure(head))
        return each.mean()

    def parts(self) -> list[Score]:
        return [partial(self._part, index=index) for index in range(geometry.COMBINED)]

    def _part(self, images: Tensor, index: int) -> Tensor:
        logits = self.network(geometry.combined(images, index)).split(geometry.HEADS, 1)
        right = (torch.full((len(images),), answer, device=images.device) for answer in geometry.answers(index))
        return torch.stack([objectives.transformation(*pair) for pair in zip(logits, right, strict=True)]).sum(0)


@dataclass(frozen=True)
class GeoPlusExposed(GeoPlus):
    """GEO+ with Outlier Exposure."""

    nominal_only: ClassVar[bool] = False


METHODS: dict[str, type[Fcdd] | type[Reconstruction] | type[Embedding]] = {
    "fcdd": Fcdd,
    "hsc": Hsc,
    "ae": Reconstruction,
    "svdd": Svdd,
    "sad": Sad,
    "focal": Focal,
    "geo": Geo,
    "geo+": GeoPlus,
    "geo+oe": GeoPlusExposed,
}


def build(recipe: Recipe) -> Network:
    """The network of the recipe's method with fresh weights and, where the recipe says so, its first layers frozen."""
    return METHODS[recipe.method].build(recipe)


def method_of(recipe: Recipe, network: Network) -> Fcdd | Reconstruction | Embedding:
    """The recipe's method on `network`, which `build` made."""
    return METHODS[recipe.method](recipe, network)  # type: ignore[arg-type]


def _size(recipe: Recipe) -> int:
    sizes = networks.BASELINE_SIZES
    if recipe.size not in sizes:
        known = ", ".join(map(str, sizes))
        raise RecipeError(f"size = {recipe.size}: method = {recipe.method!r} has networks for {known}")
    return recipe.size
