"""The Clever Hans audit as a command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fcdd.cli.common import (
    SOMETHING_WRONG,
    Json,
    SkipBad,
    Threads,
    app,
    refuse_unused,
    reported,
    set_threads,
    suffixed,
    tell,
)
from fcdd.errors import FcddError
from fcdd.files import utf8, write_atomically
from fcdd.outputs import claimed, together


@app.command()
def audit(
    model: Annotated[Path, typer.Argument(help="A model file; with --compare, the first audit's JSON file.")],
    parts: Annotated[
        Path, typer.Argument(help="MVTec layout, good/ and defects/, or good images; with --compare, the second JSON.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write; findings go beside it.")] = Path(
        "audit.html"
    ),
    compare: Annotated[bool, typer.Option("--compare", help="Compare two audits, before and after mending.")] = False,
    clean: Annotated[Path | None, typer.Option(help="With --compare: labelled images that carry no cue.")] = None,
    fail_on: Annotated[str | None, typer.Option(help="high, medium or low: exit with 1 where there is one.")] = None,
    skip_bad: SkipBad = False,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing page.")] = False,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Find out what a detector's score rests on, and whether that is the part."""
    with reported():
        if fail_on not in (None, "high", "medium", "low"):
            raise FcddError(f"--fail-on {fail_on}: must be high, medium or low")
        if compare:
            refuse_unused("not with --compare, which finds nothing new", fail_on=fail_on)
        else:
            refuse_unused("only with --compare", clean=clean)
        suffixed(output, ".html", ".htm")
        outputs = [output] if compare else [output, output.with_suffix(".json"), output.with_suffix(".roi.png")]
        with claimed(outputs, inputs=[model, parts, clean], overwrite=overwrite):
            set_threads(threads)
            if compare:
                _compare(model, parts, clean, output, skip_bad, json_)
                return
            found = _audit(model, parts, output, skip_bad, json_)
    if fail_on and found.reaches(fail_on):
        raise typer.Exit(SOMETHING_WRONG)


def _audit(model: Path, parts: Path, output: Path, skip_bad: bool, json_: bool) -> Any:
    from fcdd import audit as auditing

    found = auditing.audit(model, parts, skip_bad=skip_bad, quiet=json_)
    findings = output.with_suffix(".json")
    with together([output, findings]) as draft:
        auditing.write(found, draft / output.name)
    told = found.to_dict()
    for finding in told["findings"]:
        finding["cue"] = None if finding["cue"] is None else {**finding["cue"], "patches": []}  # they fill screens
    roi = None if found.region is None else str(auditing.region_beside(output))
    tell(
        {**told, "report": str(output), "json": str(findings), "roi": roi},
        json_,
        *(f"{finding.severity:7} {finding.title}" for finding in found.findings),
        f"{sum(found.images.values())} images in {found.seconds:.0f} s",
        f"page      {output}",
        f"findings  {findings}",
        *([f"region    {roi} (for --roi, see the page)"] if roi else []),
        then=f"open {output} in a browser: each finding says what to do",
    )
    return found


def _compare(before: Path, after: Path, clean: Path | None, output: Path, skip_bad: bool, json_: bool) -> None:
    from fcdd.audit import compare as comparing

    told = comparing.compare(before, after, clean, skip_bad)
    write_atomically(output, utf8(comparing.page(told)))
    tell(
        {**told.to_dict(), "report": str(output)},
        json_,
        *comparing.lines(told),
        f"page      {output}",
        then=f"open {output}",
    )
