"""What determines a training of the paper's method: one small TOML file, each value declared once."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from fcdd.data import DATASETS
from fcdd.errors import RecipeError
from fcdd.training.losses import LOSSES

SHORT_COOLDOWN = 0.5
FOLDER = "folder"  # in place of a dataset: a user's own images

# What methods need other than the recipes' values, which were chosen for FCDD; HSC, focal and GEO do well with those.
# Deep SVDD and Deep SAD have their authors' optimiser: at larger rates 1/‖φ − c‖² throws the network about.
SETTINGS: dict[str, dict[str, Any]] = {
    "ae": {"optimiser": "adam", "lr": 1e-3},
    "svdd": {"optimiser": "adam", "lr": 1e-4},
    "sad": {"optimiser": "adam", "lr": 1e-4},
}


@dataclass(frozen=True)
class Recipe:
    """A recipe of the paper. Sides are in pixels, times in epochs."""

    dataset: str  # one of fcdd.data.DATASETS, or FOLDER
    exposure: str  # auxiliary anomalies: confetti, labelled, one of fcdd.data.CORPORA, or folder:PATH
    network: str
    size: int  # side of the network's input
    stored: int  # side at which images are kept before augmentation
    augment: str
    preprocess: Literal["lcn", "standard", "none"]
    epochs: int
    batch: int
    optimiser: Literal["sgd", "adam"]  # sgd is Nesterov's
    lr: float
    weight_decay: float
    sigma: float  # of the Gaussian that brings A to full resolution
    method: Literal["fcdd", "hsc", "ae", "svdd", "sad", "focal", "geo", "geo+", "geo+oe"] = "fcdd"
    objective: str = "fcdd"  # of fcdd: one of fcdd.training.losses
    reconstruction: Literal["l2", "ssim"] = "l2"  # of ae: what is minimised, scored and shown
    attribution: Literal["gradient", "integrated"] = "gradient"  # heatmap of methods that have none of their own
    blur: bool = True  # smooth the heatmaps of all methods but fcdd, which are at full resolution already, by sigma
    momentum: float = 0.9
    lr_factor: float = 1.0  # the rate is multiplied by this after every epoch …
    lr_milestones: tuple[int, ...] = ()  # … and divided by ten at each of these epochs
    cooldown: float = 0.0  # share of the training, at its end, over which the rate also falls linearly to zero
    precision: Literal["float32", "bf16"] = "float32"  # of the network's products in training; weights stay float32
    passes: int = 1  # over the nominal set in one epoch
    exposure_limit: int = 0  # number of distinct auxiliary anomalies, 0 for all
    kernel: int = 0  # of the receptive-field variants; 0 keeps the network's own
    dimensions: int = 1  # of the hypersphere
    pretrained: bool = False  # start from ImageNet weights
    freeze: int = 0  # stages, each ended by a pooling, that keep their weights

    def __post_init__(self) -> None:
        if self.dataset not in (FOLDER, *DATASETS):
            raise RecipeError(f"dataset = {self.dataset!r}: must be one of {', '.join(DATASETS)}")
        for name in ("size", "stored", "epochs", "batch", "lr", "sigma", "passes", "dimensions"):
            if getattr(self, name) <= 0:
                raise RecipeError(f"{name} = {getattr(self, name)}: must be positive")
        if self.objective not in LOSSES:
            raise RecipeError(f"objective = {self.objective!r}: must be one of {', '.join(LOSSES)}")
        if LOSSES[self.objective].masks and self.exposure not in ("labelled", "confetti", "synthetic"):
            raise RecipeError(
                f"objective = {self.objective!r} needs masks, which exposure = {self.exposure!r} does not have"
            )

    def lr_at(self, epoch: int, progress: float = 0.0) -> float:
        """Learning rate of an epoch, counted from 0, of which the share `progress` is done."""
        passed = sum(epoch >= milestone for milestone in self.lr_milestones)
        left = 1 - (epoch + progress) / self.epochs
        cooling = min(1.0, left / self.cooldown) if self.cooldown else 1.0
        return float(self.lr * self.lr_factor**epoch * 0.1**passed * cooling)

    def shortened(self, epochs: int) -> Recipe:
        """The same recipe for fewer epochs, with half of them to cool down.

        The paper's schedules end at a small rate; cut short they would stop at a high one, where the weights still
        jump about: Fashion-MNIST trousers after 4 epochs gain about a point of AUROC by this.
        """
        if epochs >= self.epochs or self.cooldown:
            return dataclasses.replace(self, epochs=epochs)
        return dataclasses.replace(self, epochs=epochs, cooldown=SHORT_COOLDOWN)

    def to_dict(self) -> dict[str, Any]:
        """All values by name; `from_dict` reads them back to an equal recipe."""
        return dataclasses.asdict(self)


def names() -> list[str]:
    """The recipes that come with the package."""
    folder = resources.files("fcdd.paper") / "recipes"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load(name: str, overrides: Mapping[str, Any] | None = None) -> Recipe:
    """A recipe of the package by name, or a TOML file by path, with `overrides` put over its values.

    An override of the method brings the method's own `SETTINGS`, below the other overrides.
    """
    path = Path(name)
    if path.suffix == ".toml":
        if not path.is_file():
            raise RecipeError(f"{path}: no such recipe file")
        text = path.read_text()
    elif name in names():
        text = (resources.files("fcdd.paper") / "recipes" / f"{name}.toml").read_text()
    else:
        raise RecipeError(f"no recipe {name!r}; there are {', '.join(names())}, or pass a .toml file")
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(f"{name}: not a TOML file ({error})") from None
    overrides = overrides or {}
    return from_dict({**values, **SETTINGS.get(overrides.get("method", ""), {}), **overrides})


def from_dict(values: Mapping[str, Any]) -> Recipe:
    """A recipe from plain values; an unknown, missing or mistyped one is a RecipeError that names it."""
    hints = get_type_hints(Recipe)
    if unknown := set(values) - set(hints):
        raise RecipeError(f"unknown recipe value {', '.join(sorted(unknown))}; there are {', '.join(hints)}")
    required = {f.name for f in dataclasses.fields(Recipe) if f.default is dataclasses.MISSING}
    if missing := required - set(values):
        raise RecipeError(f"the recipe lacks {', '.join(sorted(missing))}")
    return Recipe(**{name: _typed(name, value, hints[name]) for name, value in values.items()})


def parse_override(text: str) -> tuple[str, Any]:
    """`lr=0.1` → ("lr", 0.1); the value is read as TOML, or taken as text where it is none."""
    key, sign, value = text.partition("=")
    if not sign:
        raise RecipeError(f"{text!r}: write NAME=VALUE, such as lr=0.1")
    try:
        return key.strip(), tomllib.loads(f"x = {value}")["x"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()


def _typed(name: str, value: Any, kind: Any) -> Any:
    """`value` as the field's type, or a RecipeError that says what the field takes."""
    if get_origin(kind) is Literal:
        if value in get_args(kind):
            return value
        raise RecipeError(f"{name} = {value!r}: must be one of {', '.join(get_args(kind))}")
    if get_origin(kind) is tuple:
        if isinstance(value, list | tuple) and all(isinstance(v, int) for v in value):
            return tuple(value)
        raise RecipeError(f"{name} = {value!r}: expected a list of int")
    if kind is float and isinstance(value, int):
        value = float(value)
    if isinstance(value, kind) and isinstance(value, bool) == (kind is bool):
        return value
    raise RecipeError(f"{name} = {value!r}: expected {kind.__name__}")
