"""The `fcdd` command: argument handling only. Heavy modules are imported by the command that needs them."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

# Before numpy loads: its matrix products here are small, and threads of its own would fight with ours.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import fcdd
from fcdd.errors import FcddError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Anomaly detection whose score is its explanation (FCDD).",
)

SOMETHING_WRONG = 1
BAD_INPUT = 2
STOPPED = 130

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Threads = Annotated[int, typer.Option(help="CPU threads; 0 takes all cores.")]


@contextmanager
def reported(resume: str = "") -> Iterator[None]:
    """Bad input ends with its message and code 2, a stop on request with code 130; a bug keeps its traceback."""
    from fcdd.interrupt import Interrupted

    try:
        yield
    except Interrupted as stop:
        typer.echo(f"{stop}. {resume}".strip(), err=True)
        raise typer.Exit(STOPPED) from None
    except FcddError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(BAD_INPUT) from None


def _threads(count: int) -> None:
    import torch

    if count:
        torch.set_num_threads(count)


def _tell(values: dict[str, Any], as_json: bool, *lines: str) -> None:
    """The answer of a command: one JSON object for scripts, or lines for people."""
    typer.echo(json.dumps(values) if as_json else "\n".join(lines))


@app.callback(invoke_without_command=True)
def main(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        typer.echo(fcdd.__version__)
        raise typer.Exit


@app.command()
def run(
    recipe: Annotated[str, typer.Argument(help="fmnist, cifar10, imagenet, mvtec, mvtec-semi, voc, or a .toml file.")],
    normal: Annotated[str, typer.Option(help="The nominal class (for voc: the anomalous one).")],
    data: Annotated[Path, typer.Option(help="Folder that holds the datasets.", envvar="FCDD_DATA")] = Path("data"),
    oe: Annotated[
        str | None, typer.Option(help="Anomalies: cifar100, emnist, imagenet22k, confetti, folder:DIR.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Instead of the recipe's.")] = None,
    seed: int = 0,
    weights: Annotated[str | None, typer.Option(help="File of ImageNet weights, or none for a random start.")] = None,
    network: Annotated[str | None, typer.Option(help="Instead of the recipe's, such as vgg16.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Override any recipe value: NAME=VALUE.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder of the result.")] = None,
    authors_protocol: Annotated[bool, typer.Option(help="Keep training anomalies in the test set.")] = False,
    overwrite: Annotated[bool, typer.Option(help="Start anew where a result or checkpoint exists.")] = False,
    checkpoint_seconds: Annotated[float, typer.Option(help="Seconds between two checkpoints.")] = 30.0,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Train and evaluate one model of a paper recipe. A stopped run goes on where it was."""
    with reported(f"Resume with the same command: fcdd {' '.join(sys.argv[1:])}"):
        from fcdd import recipe as recipes
        from fcdd.experiments.run import Job
        from fcdd.experiments.run import run as run_job

        _threads(threads)
        named = {"exposure": oe, "network": network}
        overrides = {k: v for k, v in named.items() if v is not None}
        overrides |= dict(recipes.parse_override(text) for text in set_ or [])
        chosen = recipes.load(recipe, overrides)
        job = Job(
            recipe=chosen if epochs is None else chosen.shortened(epochs),
            normal=normal,
            data=data,
            seed=seed,
            weights=None if weights in (None, "none") else Path(str(weights)),
            random_start=weights == "none",
            authors_protocol=authors_protocol,
        )
        folder = output or Path("runs") / f"{Path(recipe).stem}-{normal}-seed{seed}"
        if overwrite and folder.exists():
            shutil.rmtree(folder)
        _print_result(run_job(job, folder, quiet=json_, checkpoint_seconds=checkpoint_seconds), json_)


def _print_result(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(result))
        return
    typer.echo(f"{result['name']}  ({result['data']}; anomalies: {result['exposure']})")
    typer.echo(f"  start weights       {result['job']['weights']}")
    typer.echo(f"  image AUROC         {result['image_auroc']:.4f}")
    if result["pixel_auroc"] is not None:
        typer.echo(f"  pixel AUROC pooled  {result['pixel_auroc']:.4f}")
        typer.echo(f"  pixel AUROC mean    {result['pixel_auroc_mean']:.4f}")
    if result["images_per_second"]:
        typer.echo(f"  training            {result['images_per_second']:.1f} images/s, data {result['data_share']:.1%}")
    typer.echo(f"  heatmaps            {result['files']['heatmaps']}")
    typer.echo(f"  model               {result['files']['model']}")


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for everything it makes.")] = Path("fcdd-demo"),
    seed: int = 0,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Make an inspection set of metal plates, train on its good ones, and show what the detector finds."""
    with reported():
        from fcdd import demo as demonstration

        _threads(threads)
        figures = demonstration.run(output, seed, quiet=json_)
        _tell(
            figures,
            json_,
            f"trained on {figures['training']['good']} good plates in {figures['training']['seconds']:.0f} s",
            *_figures(figures),
            f"plates    {figures['plates']}   (try the other commands on them)",
            f"page      {figures['report']}",
            f"picture   {figures['picture']}",
        )


@app.command()
def train(
    good: Annotated[Path, typer.Argument(help="Folder of good images.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")] = Path(
        "model.safetensors"
    ),
    defects: Annotated[Path | None, typer.Option(help="Folder of a few labelled defects.")] = None,
    masks: Annotated[Path | None, typer.Option(help="Folder of the defects' masks.")] = None,
    roi: Annotated[Path | None, typer.Option(help="Mask of where to look.")] = None,
    ignore: Annotated[Path | None, typer.Option(help="Mask of where not to look.")] = None,
    max_false_rejects: Annotated[float | None, typer.Option(help="Share of good parts that may be rejected.")] = None,
    review: Annotated[float | None, typer.Option(help="Share of good parts that may go to review.")] = None,
    seed: int = 0,
    trunk: Annotated[str, typer.Option(help="efficientnet-lite0, vgg11 or vgg16.")] = "efficientnet-lite0",
    weights: Annotated[Path | None, typer.Option(help="File of the trunk's ImageNet weights; vgg needs one.")] = None,
    skip_bad: Annotated[bool, typer.Option(help="Leave out files that cannot be read.")] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing model and report.")] = False,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Train a detector from good images. A stopped training goes on where it was."""
    with reported(f"Resume with the same command: fcdd {' '.join(sys.argv[1:])}"):
        from fcdd import commands

        _threads(threads)
        options = commands.TrainOptions(roi, ignore, max_false_rejects, review, seed, trunk, weights, skip_bad)
        told = commands.train(good, defects, masks, output, options, overwrite, quiet=json_)
        _tell(
            told,
            json_,
            f"trained on {told['good'] - told['calibration']} good images"
            + (f" and {told['defects']} defects" if told["defects"] else "")
            + f" in {told['seconds']:.0f} s",
            told["guarantee"],
            *(f"skipped {line}" for line in told["skipped"]),
            f"model     {told['model']}",
            f"report    {told['report']}",
        )


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="A model file that `fcdd train` wrote.")],
    inputs: Annotated[Path, typer.Argument(help="An image or a folder of images.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for scores and overlays.")] = Path("results"),
    fail_on: Annotated[str | None, typer.Option(help="ng or review: exit with 1 where there is one.")] = None,
    skip_bad: Annotated[bool, typer.Option(help="Leave out files that cannot be read.")] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing folder.")] = False,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Judge images: scores.csv, results.jsonl and an overlay of each."""
    with reported():
        from fcdd import commands

        _threads(threads)
        if fail_on not in (None, "ng", "review"):
            raise FcddError(f"--fail-on {fail_on}: must be ng or review")
        told = commands.predict(model, inputs, output, overwrite, skip_bad, quiet=json_)
        counts = told["verdicts"]
        _tell(
            told,
            json_,
            ", ".join(f"{counts.get(v, 0)} {v}" for v in ("OK", "REVIEW", "NG"))
            + f"   ({told['images_per_second']:.1f} images/s)",
            *(
                f"  {row['verdict']:6} score {row['score']:.3f}  p {row['p_value']:.3f}  {row['file']}"
                for row in told["worst"]
            ),
            *(f"skipped {line}" for line in told["skipped"]),
            f"results   {told['output']}",
        )
    wanted = {"ng": ["NG"], "review": ["NG", "REVIEW"]}.get(fail_on or "", [])
    if any(counts.get(verdict) for verdict in wanted):
        raise typer.Exit(SOMETHING_WRONG)


@app.command()
def evaluate(
    model: Annotated[Path, typer.Argument(help="A model file that `fcdd train` wrote.")],
    test: Annotated[Path, typer.Argument(help="MVTec layout, or good/ and defects/ (and masks/).")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The page to write.")] = None,
    skip_bad: Annotated[bool, typer.Option(help="Leave out files that cannot be read.")] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing page.")] = False,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Measure a detector on labelled images and write a page that shows every one of them."""
    with reported():
        from fcdd import commands

        _threads(threads)
        page = output or model.with_name(f"{model.stem}-evaluation.html")
        told = commands.evaluate(model, test, page, overwrite, skip_bad, quiet=json_)
        _tell(told, json_, *_figures(told), f"page      {told['report']}")


@app.command()
def calibrate(
    model: Annotated[Path, typer.Argument(help="A model file that `fcdd train` wrote.")],
    good: Annotated[Path, typer.Argument(help="Folder of good images that the model has not seen.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Instead of changing the model file.")] = None,
    max_false_rejects: Annotated[float | None, typer.Option(help="Share of good parts that may be rejected.")] = None,
    defects: Annotated[Path | None, typer.Option(help="Folder of defects the model has not seen.")] = None,
    miss_rate: Annotated[float | None, typer.Option(help="Share of defects that may pass.")] = None,
    best_f1: Annotated[bool, typer.Option(help="The threshold with the best F1.")] = False,
    cost_false_reject: Annotated[float | None, typer.Option(help="Cost of a scrapped good part.")] = None,
    cost_escape: Annotated[float | None, typer.Option(help="Cost of an escaped defect.")] = None,
    prior: Annotated[float, typer.Option(help="Share of defects on the line, for the cost.")] = 0.01,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing output.")] = False,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Set thresholds anew from good images, and defects where there are some, without training."""
    with reported():
        from fcdd import commands

        _threads(threads)
        choice = commands.Choice(defects, miss_rate, best_f1, cost_false_reject, cost_escape, prior)
        told = commands.calibrate(model, good, output or model, max_false_rejects, choice, overwrite, quiet=json_)
        _tell(
            told,
            json_,
            told["guarantee"],
            f"review above {told['review_above']:.4f}, reject above {told['reject_above']:.4f}",
            f"model     {told['model']}",
        )


@app.command()
def drift(
    model: Annotated[Path, typer.Argument(help="A model file that `fcdd train` wrote.")],
    inputs: Annotated[Path, typer.Argument(help="Folder of new images, most of them presumably good.")],
    level: Annotated[float, typer.Option(help="Chance of a false alarm.")] = 0.01,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Say whether new scores still look like those of the calibration."""
    with reported():
        from fcdd import commands

        _threads(threads)
        told = commands.drifted(model, inputs, level, quiet=json_)
        _tell(told, json_, told["sentence"])


@app.command()
def check(
    root: Annotated[Path, typer.Argument(help="Folder of good images, or of good and defects, or an MVTec class.")],
    json_: Json = False,
) -> None:
    """Look through a folder of images before training: what is damaged, doubled, odd or missing, and what to do."""
    with reported():
        from fcdd import doctor

        diagnosis = doctor.check(root, quiet=json_)
        _tell(diagnosis.to_dict(), json_, diagnosis.text())
    if not diagnosis.ok:
        raise typer.Exit(SOMETHING_WRONG)


def _figures(told: dict[str, Any]) -> list[str]:
    """Lines of an evaluation, for people."""
    lines = []
    if told["image_auroc"] is not None:
        interval = f"95 % interval {told['image_auroc_low']:.3f} to {told['image_auroc_high']:.3f}"
        lines.append(f"image AUROC  {told['image_auroc']:.4f}   ({interval})")
    if told["pixel_auroc"] is not None:
        lines.append(f"pixel AUROC  {told['pixel_auroc']:.4f}   AUPRO {told['aupro']:.4f}")
    for kind, counts in told["verdicts"].items():
        lines.append(f"  {kind:20} " + "  ".join(f"{counts.get(v, 0):4} {v}" for v in ("OK", "REVIEW", "NG")))
    lines.append(f"{told['images']} images, {told['images_per_second']:.1f} images/s")
    return lines


if __name__ == "__main__":
    app()
