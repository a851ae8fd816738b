"""The inspector's commands: train a detector, use it, look after it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from fcdd.cli.common import SOMETHING_WRONG, Json, SkipBad, Threads, app, figure_lines, reported, set_threads, tell
from fcdd.errors import FcddError


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

        set_threads(threads)
        figures = demonstration.run(output, seed, quiet=json_)
        tell(
            figures,
            json_,
            f"trained on {figures['training']['good']} good plates in {figures['training']['seconds']:.0f} s",
            *figure_lines(figures),
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
    whole: Annotated[
        bool, typer.Option(help="The labelled images show other things than the part, not defects on it.")
    ] = False,
    roi: Annotated[Path | None, typer.Option(help="Mask of where to look.")] = None,
    ignore: Annotated[Path | None, typer.Option(help="Mask of where not to look.")] = None,
    neutralise: Annotated[
        Path | None, typer.Option(help="Findings of `fcdd audit`: their cues shall not count.")
    ] = None,
    max_false_rejects: Annotated[float | None, typer.Option(help="Share of good parts that may be rejected.")] = None,
    review: Annotated[float | None, typer.Option(help="Share of good parts that may go to review.")] = None,
    seed: int = 0,
    trunk: Annotated[
        str, typer.Option(help="efficientnet-lite0, efficientnet-lite0-deep (knows things too), vgg11 or vgg16.")
    ] = "efficientnet-lite0",
    weights: Annotated[Path | None, typer.Option(help="File of the trunk's ImageNet weights; vgg needs one.")] = None,
    skip_bad: SkipBad = False,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing model and report.")] = False,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Train a detector from good images. A stopped training goes on where it was."""
    with reported(f"Resume with the same command: fcdd {' '.join(sys.argv[1:])}"):
        from fcdd import commands

        set_threads(threads)
        options = commands.TrainOptions(
            roi, ignore, max_false_rejects, review, seed, trunk, weights, skip_bad, whole, neutralise
        )
        told = commands.train(good, defects, masks, output, options, overwrite, quiet=json_)
        tell(
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
    model: Annotated[Path, typer.Argument(help="A model file of `fcdd train` or `fcdd export`.")],
    inputs: Annotated[Path, typer.Argument(help="An image, a folder of images, or with --on a manifest.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for scores and overlays.")] = Path("results"),
    fail_on: Annotated[str | None, typer.Option(help="ng or review: exit with 1 where there is one.")] = None,
    skip_bad: SkipBad = False,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing folder.")] = False,
    on: Annotated[str, typer.Option(help="local, ray, or ray:ADDRESS of a cluster, for large collections.")] = "local",
    format_: Annotated[str, typer.Option("--format", help="With --on ray: parquet or jsonl.")] = "parquet",
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Judge images: scores.csv, results.jsonl and an overlay of each; with --on ray, partitions of scores alone."""
    with reported():
        from fcdd import commands

        if fail_on not in (None, "ng", "review"):
            raise FcddError(f"--fail-on {fail_on}: must be ng or review")
        where, _, address = on.partition(":")
        if where == "ray":
            from fcdd import mass

            told = mass.predict(model, inputs, output, address, format_, overwrite, threads, quiet=json_)
        elif where == "local":
            told = commands.predict(model, inputs, output, overwrite, skip_bad, quiet=json_, threads=threads)
        else:
            raise FcddError(f"--on {on}: choose local, ray or ray:ADDRESS")
        counts = told["verdicts"]
        tell(
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
    model: Annotated[Path, typer.Argument(help="A model file of `fcdd train` or `fcdd export`.")],
    test: Annotated[Path, typer.Argument(help="MVTec layout, or good/ and defects/ (and masks/).")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The page to write.")] = None,
    skip_bad: SkipBad = False,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing page.")] = False,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Measure a detector on labelled images and write a page that shows every one of them."""
    with reported():
        from fcdd import commands

        page = output or model.with_name(f"{model.stem}-evaluation.html")
        told = commands.evaluate(model, test, page, overwrite, skip_bad, quiet=json_, threads=threads)
        tell(told, json_, *figure_lines(told), f"page      {told['report']}")


@app.command()
def calibrate(
    model: Annotated[Path, typer.Argument(help="A model file of `fcdd train` or `fcdd export`.")],
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

        choice = commands.Choice(defects, miss_rate, best_f1, cost_false_reject, cost_escape, prior)
        told = commands.calibrate(
            model, good, output or model, max_false_rejects, choice, overwrite, quiet=json_, threads=threads
        )
        tell(
            told,
            json_,
            told["guarantee"],
            f"review above {told['review_above']:.4f}, reject above {told['reject_above']:.4f}",
            f"model     {told['model']}",
        )


@app.command()
def drift(
    model: Annotated[Path, typer.Argument(help="A model file of `fcdd train` or `fcdd export`.")],
    inputs: Annotated[Path, typer.Argument(help="Folder of new images, most of them presumably good.")],
    level: Annotated[float, typer.Option(help="Chance of a false alarm.")] = 0.01,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Say whether new scores still look like those of the calibration."""
    with reported():
        from fcdd import commands

        told = commands.drifted(model, inputs, level, threads)
        tell(told, json_, told["sentence"])


@app.command()
def check(
    root: Annotated[Path, typer.Argument(help="Folder of good images, or of good and defects, or an MVTec class.")],
    json_: Json = False,
) -> None:
    """Look through a folder of images before training: what is damaged, doubled, odd or missing, and what to do."""
    with reported():
        from fcdd import doctor

        diagnosis = doctor.check(root, quiet=json_)
        tell(diagnosis.to_dict(), json_, diagnosis.text())
    if not diagnosis.ok:
        raise typer.Exit(SOMETHING_WRONG)
