"""What scales an experiment: classes, seeds, budget; and the jobs it makes of a recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from fcdd.data import cifar, fashion_mnist, imagenet, mvtec
from fcdd.errors import DataError, FcddError
from fcdd.nn import networks
from fcdd.paper.grid import Task
from fcdd.paper.run import Job
from fcdd.training import recipe as recipes

Protocol = Literal["paper", "authors"]
PAPER_SEEDS = 5


@dataclass(frozen=True)
class Budget:
    """`epochs` by dataset, none for the recipe's own; `classes` at most, 0 for all."""

    epochs: Mapping[str, int]
    seeds: int
    classes: int = 0


BUDGETS = {
    "smoke": Budget(dict.fromkeys(("fmnist", "cifar10", "imagenet", "mvtec", "voc"), 1), seeds=1, classes=2),
    "short": Budget({"fmnist": 8, "cifar10": 20, "imagenet": 10, "mvtec": 10, "voc": 30}, seeds=1),
    "paper": Budget({}, seeds=PAPER_SEEDS),
}


@dataclass(frozen=True)
class Options:
    """What the user chose; 0 and empty leave the choice to the budget or the experiment."""

    data: Path
    output: Path
    weights: Path | None = None
    random_start: bool = False
    budget: str = "short"
    epochs: int = 0
    seeds: int = 0
    classes: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    protocol: Protocol = "paper"
    trunk: str = ""  # network instead of VGG11-BN, where the recipe has that
    corpus: str = ""  # of Outlier Exposure, where the recipe has one
    overrides: Mapping[str, Any] = field(default_factory=dict)  # of recipe values

    def __post_init__(self) -> None:
        if self.budget not in BUDGETS:
            raise FcddError(f"no budget {self.budget!r}; there are {', '.join(BUDGETS)}")
        if self.protocol not in ("paper", "authors"):
            raise FcddError(f"no protocol {self.protocol!r}; there are paper and authors")

    def chosen(self, offered: Sequence[str], what: Literal["datasets", "methods"]) -> list[str]:
        """Those of `offered` that the user named, in the order offered; all where none were named."""
        named = self.datasets if what == "datasets" else self.methods
        if unknown := set(named) - set(offered):
            raise FcddError(f"no {what[:-1]} {', '.join(sorted(unknown))} here; there are {', '.join(offered)}")
        return [one for one in offered if one in named] if named else list(offered)

    def tasks(
        self,
        recipe: str,
        classes: Sequence[str],
        column: str,
        changes: Mapping[str, Any] | None = None,
        probe: str = "",
    ) -> list[Task]:
        """One task a class and seed of `recipe`; the experiment's `changes` go over the user's overrides."""
        own = recipes.load(recipe)
        named: dict[str, Any] = {"network": self.trunk} if self.trunk and own.network in networks.PRETRAINED else {}
        named |= {"exposure": self.corpus} if self.corpus and own.exposure not in ("confetti", "labelled") else {}
        chosen = recipes.load(recipe, {**named, **self.overrides, **(changes or {})})
        budget = BUDGETS[self.budget]
        epochs = self.epochs or budget.epochs.get(chosen.dataset, 0)
        chosen = chosen.shortened(epochs) if epochs else chosen
        kept = self.authors and chosen.exposure == "labelled" and chosen.dataset == "mvtec"
        return [
            Task(Job(chosen, normal, self.data, seed, self.weights, self.random_start, kept), column, probe)
            for normal in classes
            for seed in range(self.seeds or budget.seeds)
        ]

    @property
    def authors(self) -> bool:
        return self.protocol == "authors"

    def classes_of(self, dataset: str) -> list[str]:
        """The classes to run: those the user named, or all that the data folder has; a budget may cut them short."""
        everything = present(dataset, self.data)
        if self.classes:
            return [one for name in self.classes if (one := _named(dataset, name, everything))]
        return everything[: BUDGETS[self.budget].classes or None]

    def check_classes(self, datasets: Sequence[str]) -> None:
        """Every class the user named must be one of some dataset's."""
        for name in self.classes:
            if not any(_named(dataset, name, present(dataset, self.data)) for dataset in datasets):
                known = [one for dataset in datasets for one in present(dataset, self.data)]
                raise DataError(f"no class {name!r} in {', '.join(datasets)}; there are {', '.join(known)}")


def present(dataset: str, root: Path) -> list[str]:
    """The classes of a dataset: of Fashion-MNIST and CIFAR-10 all, of the others those whose folders are there."""
    if dataset == "mvtec":
        homes = (root, root / "mvtec", root / "mvtec_anomaly_detection")
        found = [one for one in mvtec.CLASSES if any((home / one / "train").is_dir() for home in homes)]
        return found or list(mvtec.CLASSES)
    if dataset == "imagenet":
        return _imagenet(root)
    fixed = {"fmnist": fashion_mnist.CLASSES, "cifar10": cifar.CLASSES, "voc": ("horse",)}
    return list(fixed[dataset])


def _imagenet(root: Path) -> list[str]:
    """The paper's 30 by name where at least half of them are there, else the folders found, as with Imagenette."""
    for home in (root, root / "imagenet", root / "imagenette"):
        found = sorted(path.name for path in (home / "train").glob("n????????") if path.is_dir())
        if found:
            paper = [name for name, wnid in imagenet.IMAGENET30.items() if wnid in found]
            return paper if 2 * len(paper) >= len(imagenet.IMAGENET30) else found
    return list(imagenet.IMAGENET30)


def _named(dataset: str, name: str, everything: Sequence[str]) -> str | None:
    """The class that `name` means in a dataset, by its name, a synonym or its index."""
    index = {"fmnist": fashion_mnist.class_index, "cifar10": cifar.class_index}.get(dataset)
    if index is None:
        return next((one for one in everything if one.lower() == name.lower()), None)
    try:
        return everything[index(name)]
    except DataError:
        return None
