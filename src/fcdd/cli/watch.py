"""`fcdd watch`: judge what appears in a folder, as long as the line runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from fcdd.cli.common import Json, Threads, app, command, not_negative, refuse_unused, reported, tell
from fcdd.cli.predict import exit_on, refuse_unknown
from fcdd.errors import DataError, FcddError


@app.command()
def watch(
    model: Annotated[Path, typer.Argument(help="A model file of `fcdd train` or `fcdd export`.")],
    folder: Annotated[Path, typer.Argument(help="Folder in which images appear, also on a network share.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the log and the sorted images.")] = Path(
        "watched"
    ),
    place: Annotated[
        str, typer.Option(help="link, copy or move the images into OK/, REVIEW/ and NG/ of the output.")
    ] = "link",
    once: Annotated[bool, typer.Option("--once", help="Judge what is there and end, for scripts.")] = False,
    fail_on: Annotated[
        str | None, typer.Option(help="With --once, ng or review: exit with 1 where there is one.")
    ] = None,
    every: Annotated[float, typer.Option(callback=not_negative, help="Seconds between two looks at the folder.")] = 1.0,
    settle: Annotated[
        float, typer.Option(callback=not_negative, help="Seconds without a change until a file is complete.")
    ] = 2.0,
    patience: Annotated[
        float,
        typer.Option(callback=not_negative, help="Seconds without a change until a file that cannot be read is noted."),
    ] = 30.0,
    threads: Threads = 0,
    json_: Json = False,
) -> None:
    """Judge every image that appears in a folder, once, sort it by its verdict and keep a log, until it is stopped."""
    counts: dict[str, int] = {}
    with reported():
        from fcdd.batch.watch import OVERLAYS, WAYS, Pace, run, watching
        from fcdd.interrupt import stop_on_signal
        from fcdd.report.drawing import words

        way = next((known for known in WAYS if known == place), None)
        if way is None:
            raise FcddError(f"--place {place}: choose {', '.join(WAYS)}")
        refuse_unknown(fail_on)
        if not once:
            refuse_unused("only with --once; else nothing waits for the end", fail_on=fail_on)
        pace = Pace(every, settle, patience)
        with stop_on_signal() as stop, watching(model, folder, output, way, pace, threads) as watcher:
            limit = watcher.detector.calibration.limits.reject
            if not json_:
                before = watcher.journal.count
                typer.echo(
                    f"watching {folder} with {model.name}"
                    + (f"; {before} images in the log of {output} are not judged again" if before else "")
                    + ("" if once else ". Stop with Ctrl-C")
                )

            def line(entry: Mapping[str, Any]) -> None:
                if entry["error"]:
                    typer.echo(f"{entry['time'][11:19]}  cannot be read: {entry['error']}")
                else:
                    said = f"{entry['verdict']:6} {words(entry['score'], limit)}"
                    typer.echo(f"{entry['time'][11:19]}  {said}  {entry['file']} → {entry['placed']}")

            told = run(watcher, once, stop, (lambda entry: None) if json_ else line)
        counts = told["verdicts"]
        again = f"go on with {command('watch', model, folder, '-o', output)}"
        tell(
            told,
            json_,
            ", ".join(f"{counts.get(v, 0)} {v}" for v in ("OK", "REVIEW", "NG"))
            + (f", {len(told['unreadable'])} that cannot be read" if told["unreadable"] else ""),
            f"log       {told['log']}   (also as log.csv)",
            then=f"look at NG and REVIEW, which {output / OVERLAYS} explains; {again}",
        )
        if once and told["unreadable"]:
            raise DataError(
                f"{len(told['unreadable'])} files cannot be used, the first: {told['unreadable'][0]}. They are in the "
                "log and were left where they are"
            )
    exit_on(fail_on, counts)
