"""`fcdd compare`: several models on the same images, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from fcdd import folders
from fcdd.cli.common import SOMETHING_WRONG, Json, SkipBad, Threads, app, reported, tell
from fcdd.detector import load
from fcdd.errors import FcddError
from fcdd.outputs import whole_folder
from fcdd.report import comparison
from fcdd.report.drawing import words

FAIL_ON = ("worse", "changed")
SHOWN = 10  # images whose verdicts differ that are listed


def compare_models(
    models: Sequence[Path], test: Path, output: Path, overwrite: bool, skip_bad: bool, quiet: bool, threads: int = 0
) -> tuple[dict[str, Any], list[str]]:
    """Figures of all `models` on the images of `test`, the page that shows them, and lines for people."""
    if len(models) < 2:
        raise FcddError("compare needs at least two models, then the folder of images: fcdd compare A B test/")
    with whole_folder(output, inputs=[*models, test], overwrite=overwrite) as draft:
        detectors = dict(zip(_names(models), (load(model, threads) for model in models), strict=True))
        found = folders.read_labelled_or_not(test, skip_bad=skip_bad)
        judged, differences = comparison.write(detectors, found, test, draft, quiet)
        names = [str(path.relative_to(test)) for path in found.paths]
        told = comparison.figures(judged, differences, found, names)
    lines = [*comparison.warnings(judged)]
    for one in judged:
        counts = Counter(result["verdict"] for result in one.results)
        area = one.evaluation.image_auroc
        lines.append(
            f"{one.name:20} "
            + "  ".join(f"{counts[v]:4} {v}" for v in ("OK", "REVIEW", "NG"))
            + ("" if area is None else f"   image AUROC {area:.4f}")
            + ("" if one.evaluation.pixel_auroc is None else f"   pixel AUROC {one.evaluation.pixel_auroc:.4f}")
        )
    for difference in differences:
        lines += difference.sentences()
    disagreed = comparison.changed(judged)
    for index in disagreed[:SHOWN]:
        each = (f"{one.verdict(index)} ({words(one.results[index]['score'], one.limit)})" for one in judged)
        lines.append(f"  {names[index]}: {' → '.join(each)}")
    if len(disagreed) > SHOWN:
        lines.append(f"  and {len(disagreed) - SHOWN} more, on the page")
    page = str(output / comparison.PAGE)
    return {"output": str(output), "page": page, **told}, [*lines, f"page      {page}"]


def _names(models: Sequence[Path]) -> list[str]:
    """The models' names: of their files, or with folders and number where these are not different."""
    for names in ([m.stem for m in models], [m.name for m in models], [str(m) for m in models]):
        if len(set(names)) == len(names):
            return names
    return [f"{model} ({number})" for number, model in enumerate(models, 1)]


@app.command()
def compare(
    paths: Annotated[
        list[Path], typer.Argument(metavar="MODEL MODEL... TEST", help="Two or more models, then a folder of images.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for page, table and images.")] = Path(
        "comparison"
    ),
    fail_on: Annotated[
        str | None,
        typer.Option(
            help="Exit with 1 where another model than the first is worse (a mistake that the first does not make), "
            "or where verdicts are changed."
        ),
    ] = None,
    skip_bad: SkipBad = False,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing folder that fcdd made.")] = False,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Compare models on the same images, labelled or not: figures, verdicts that differ, and heatmaps side by side."""
    with reported():
        if fail_on is not None and fail_on not in FAIL_ON:
            raise FcddError(f"--fail-on {fail_on}: must be {' or '.join(FAIL_ON)}")
        *models, test = paths
        told, lines = compare_models(models, test, output, overwrite, skip_bad, quiet=json_, threads=threads)
        if fail_on == "worse" and told["models"][0]["image_auroc"] is None:
            raise FcddError(f"--fail-on worse: {test} has no labelled good parts and defects. Use --fail-on changed")
        tell(told, json_, *lines, then=f"open {told['page']} in a browser")
    failed = {"worse": any(one["worse"] for one in told["differences"]), "changed": bool(told["changed"])}
    if failed.get(fail_on or "", False):
        raise typer.Exit(SOMETHING_WRONG)
