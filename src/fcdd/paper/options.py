"""What scales an experiment: classes, seeds, budget; and the jobs it makes of a recipe."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from fcdd.data import DATASETS
from fcdd.errors import DataError, FcddError
from fcdd.files import write_atomically
from fcdd.nn import networks
from fcdd.paper.grid import Task
from fcdd.paper.run import Job
from fcdd.training import recipe as recipes

Protocol = Literal["paper", "authors"]
PAPER_SEEDS = 5


@dataclass(frozen=True)
class Budget:
    """How much of an experiment is run; what smoke and short change stands with each dataset."""

    seeds: int
    classes: int = 0  # at most; 0 for all


BUDGETS = {"smoke": Budget(seeds=1, classes=1), "short": Budget(seeds=1), "paper": Budget(seeds=PAPER_SEEDS)}


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
        """One task a class and seed of `recipe`; the experiment's `changes` go over the user's overrides.

        With the protocol of the authors' code, the values it has for the dataset go over the recipe's.
        """
        own = recipes.load(recipe)
        named: dict[str, Any] = dict(DATASETS[own.dataset].authors) if self.authors else {}
        named |= {"network": self.trunk} if self.trunk and own.network in networks.PRETRAINED else {}
        named |= {"exposure": self.corpus} if self.corpus and own.exposure not in ("confetti", "labelled") else {}
        smoke = DATASETS[own.dataset].smoke if self.budget == "smoke" else {}
        named |= {name: value for name, value in smoke.items() if name != "epochs"}
        chosen = recipes.load(recipe, {**named, **self.overrides, **(changes or {})})
        epochs = self.epochs or {"smoke": smoke.get("epochs"), "short": DATASETS[own.dataset].short}.get(self.budget)
        chosen = chosen.shortened(epochs) if epochs else chosen
        kept = self.authors and chosen.exposure == "labelled" and DATASETS[chosen.dataset].draws_labelled
        return [
            Task(Job(chosen, normal, self.data, seed, self.weights, self.random_start, kept), column, probe)
            for normal in classes
            for seed in range(self.seeds or BUDGETS[self.budget].seeds)
        ]

    @property
    def authors(self) -> bool:
        """Whether to do what the authors' code does, not what the paper says."""
        return self.protocol == "authors"

    def classes_of(self, dataset: str) -> list[str]:
        """The classes to run: those the user named, or all that the data folder has; a budget may cut them short."""
        if self.classes:
            return [one for name in self.classes if (one := DATASETS[dataset].named(name, self.data))]
        return DATASETS[dataset].present(self.data)[: BUDGETS[self.budget].classes or None]

    def check_classes(self, datasets: Sequence[str]) -> None:
        """Every class the user named must be one of some dataset's; DataError where one is not."""
        for name in self.classes:
            if not any(DATASETS[dataset].named(name, self.data) for dataset in datasets):
                known = [one for dataset in datasets for one in DATASETS[dataset].present(self.data)]
                raise DataError(f"no class {name!r} in {', '.join(datasets)}; there are {', '.join(known)}")

    def remember(self, experiment: str) -> None:
        """Write the options down in the output folder, for `remembered`."""
        values = dataclasses.asdict(self) | {"data": str(self.data.absolute()), "output": ""}
        values["weights"] = str(self.weights.absolute()) if self.weights else None
        write_atomically(_plan_path(self.output, experiment), json.dumps(values, indent=1).encode())

    @staticmethod
    def remembered(output: Path, experiment: str) -> Options | None:
        """The options of the last run of `experiment` into `output`; None where there was none."""
        path = _plan_path(output, experiment)
        if not path.is_file():
            return None
        values = json.loads(path.read_text())
        values |= {name: tuple(values[name]) for name in ("classes", "datasets", "methods")}
        weights = Path(values["weights"]) if values["weights"] else None
        return Options(**values | {"data": Path(values["data"]), "output": output, "weights": weights})


def _plan_path(output: Path, experiment: str) -> Path:
    return output / "plans" / f"{experiment}.json"
