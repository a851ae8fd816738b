"""`fcdd run`: train and evaluate one model of a paper recipe on real data."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

import fcdd
from fcdd import files
from fcdd.anomalies.exposure import exposure as open_exposure
from fcdd.data import DATASETS, Problem, Source, Split
from fcdd.data.sources import Images
from fcdd.errors import DataError, ModelError
from fcdd.nn import networks
from fcdd.nn import preprocess as preprocessing
from fcdd.nn.baselines import Dense
from fcdd.nn.fcn import FCN
from fcdd.outputs import RESULT
from fcdd.paper.figures import heatmap_sheet
from fcdd.paper.model import Evaluation, PaperModel, evaluate
from fcdd.seeds import generator_of
from fcdd.training import loop
from fcdd.training.methods import METHODS, build
from fcdd.training.recipe import Recipe


@dataclass(frozen=True)
class Job:
    """One model of a recipe: all that determines its result, and where the result goes."""

    recipe: Recipe
    normal: str
    data: Path
    seed: int
    weights: Path | None  # ImageNet weights of a pretrained network
    random_start: bool = False  # do without them
    authors_protocol: bool = False  # semi-supervised MVTec: training anomalies stay in the test set

    @property
    def identity(self) -> dict[str, Any]:
        """What tells this job from others, as its result states it."""
        return {
            "recipe": self.recipe.to_dict(),
            "normal": self.normal,
            "seed": self.seed,
            "weights": self.weights.name if self.weights and starts_from_weights(self) else "random",
            "authors_protocol": self.authors_protocol,
        }


def open_split(job: Job) -> Split:
    """The dataset of the job, with `normal` as its nominal class (VOC: as its anomalous one)."""
    problem = Problem(
        root=job.data,
        normal=job.normal,
        size=job.recipe.stored,
        labelled=job.recipe.exposure == "labelled",
        authors_protocol=job.authors_protocol,
        seed=job.seed,
    )
    return DATASETS[job.recipe.dataset].read(problem)


def open_corpus(job: Job, channels: int, split: Split) -> tuple[Source | None, str]:
    """The auxiliary anomalies and where they come from; None where they are synthetic or part of the split."""
    if METHODS[job.recipe.method].nominal_only:
        return None, "none, trained on nominal images only"
    if job.recipe.exposure in ("confetti", "labelled"):
        return None, job.recipe.exposure
    dataset = DATASETS[job.recipe.dataset]
    corpus, provenance = open_exposure(
        job.recipe.exposure,
        job.data,
        channels=channels,
        size=job.recipe.stored,
        limit=job.recipe.exposure_limit or None,
        generator=generator_of(job.seed, "exposure"),
        exclude=dataset.left_out(job.normal) if dataset.left_out else (),
        fit=dataset.fit,
    )
    return corpus, provenance + _overlap(corpus, split)


def _overlap(corpus: Source, split: Split) -> str:
    """What to add to the provenance where the corpus holds classes of the test set, as with Imagenette in both parts.

    Raises:
        DataError: the corpus holds nominal training or test images themselves.
    """
    if not isinstance(corpus, Images):
        return ""
    own = {path.resolve() for part in (split.nominal, split.test) if isinstance(part, Images) for path in part.paths}
    paths = [path.resolve() for path in corpus.paths]
    if same := sorted(own & set(paths)):
        raise DataError(
            f"{same[0]}: one of {len(same):,} images that are both in the problem and among its auxiliary anomalies; "
            "choose another corpus, or keep the problem's images out of it"
        )
    tested = {path.parent.name for path in own}
    shared = sum(path.parent.name in tested for path in paths)
    return f", {shared:,} of them of the test set's classes" if shared else ""


def starts_from_weights(job: Job) -> bool:
    """Whether the network starts from ImageNet weights: the recipe, the method and the user must all want it."""
    return job.recipe.pretrained and METHODS[job.recipe.method].pretrainable and not job.random_start


def start(job: Job) -> tuple[PaperModel, loop.Supply, Split, str]:
    """Everything up to the first step: data, network with its start weights, preprocessing, batches."""
    torch.manual_seed(generator_of(job.seed, "weights").initial_seed())
    network = build(job.recipe)
    if starts_from_weights(job):
        trunk = network.trunk if isinstance(network, Dense) else network
        assert isinstance(trunk, FCN)
        networks.load_weights(trunk, job.recipe.network, job.weights)
    split = open_split(job)
    corpus, provenance = open_corpus(job, network.channels, split)
    preprocess = preprocessing.fit(job.recipe.preprocess, split.nominal)
    model = PaperModel(network, preprocess, job.recipe)
    return model, loop.supply(job.recipe, split, corpus, preprocess), split, provenance


def run(
    job: Job, folder: Path, output: Path | None = None, quiet: bool = False, checkpoint_seconds: float = 30.0
) -> dict[str, Any]:
    """Train, evaluate and write model, figures and result into `folder`; what is there already is not done again.

    Args:
        output: where the folder will be found in the end, if that is elsewhere; the result names files there.
    """
    output = output or folder
    result_path, checkpoint_path = folder / RESULT, folder / "checkpoint.safetensors"
    identity = json.loads(json.dumps(job.identity))
    if result_path.exists():
        finished: dict[str, Any] = json.loads(result_path.read_text())
        if finished["job"] != identity:
            raise ModelError(f"{output}: holds the result of another run; choose another -o, or pass --overwrite")
        return finished
    model, source, split, provenance = start(job)
    history = loop.train(model.network, source, job.seed, checkpoint_path, checkpoint_seconds, quiet)
    model.save(folder / "model.safetensors", job.seed, split)
    evaluation = evaluate(model, split, quiet)
    heatmap_sheet(model, split, evaluation.scores, folder / "heatmaps.png")
    result = {
        "job": identity,
        "name": split.name,
        **_figures(evaluation),
        "data": split.provenance,
        "exposure": provenance,
        "losses": history.losses,
        "images_per_second": history.samples / history.seconds if history.seconds else None,
        "data_share": history.data_seconds / history.seconds if history.seconds else None,
        "versions": {"fcdd": fcdd.__version__, "torch": torch.__version__, "python": platform.python_version()},
        "files": {"model": str(output / "model.safetensors"), "heatmaps": str(output / "heatmaps.png")},
    }
    files.write_atomically(result_path, json.dumps(result, indent=1).encode())
    checkpoint_path.unlink(missing_ok=True)
    return result


def _figures(evaluation: Evaluation) -> dict[str, Any]:
    return asdict(evaluation)
