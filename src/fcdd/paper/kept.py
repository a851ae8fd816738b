"""Results that are kept for good: one small file a job, from which tables are made again without data or models.

A record holds what a table needs and says: figures, recipe, class, seed, start weights, data read, time taken. It has
no scores of single images, no weights, and no path of the machine it was made on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fcdd import files
from fcdd.errors import DataError
from fcdd.paper.experiments import EXPERIMENTS
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.options import Options
from fcdd.paper.results import Results
from fcdd.paper.run import Job
from fcdd.paper.tables import Table
from fcdd.training import recipe as recipes

DATA = "DATA"  # in the place of the data folder's path
BULKY = ("scores", "files", "plain", "marked", "labels")  # lists with an entry an image, and paths
DIGITS = 6


@dataclass(frozen=True)
class Study:
    """The records of one folder: results of one experiment under one set of options."""

    experiment: str
    options: Options
    results: Results

    def tables(self) -> list[Table]:
        """The experiment's tables of what was kept."""
        return EXPERIMENTS[self.experiment].tables(self.options, self.results, list(self.results))


def keep(folder: Path, experiment: str, options: Options, ledger: Ledger, tasks: Sequence[Task]) -> list[Path]:
    """Write a record of each done task into `folder`; the files."""
    written = []
    for task in tasks:
        result = ledger.result(task)
        if result is None:
            continue
        record = {
            "experiment": experiment,
            "column": task.column,
            "probe": task.probe,
            "protocol": options.protocol,
            "overrides": dict(options.overrides),
            "seconds": ledger.seconds(task),
            "result": _small(result),
        }
        text = json.dumps(_rounded(record), indent=1, ensure_ascii=False)
        for path in {str(options.data.absolute()), str(options.data)} - {"."}:
            text = text.replace(path, DATA)
        written.append(folder / f"{ledger.folder(task).name}.json")
        files.write_atomically(written[-1], (text + "\n").encode())
    return written


def _small(result: Mapping[str, Any]) -> dict[str, Any]:
    """The result without what only models and figures need, also within a probe's figures."""
    return {
        name: _small(value) if isinstance(value, Mapping) and name != "job" else value
        for name, value in result.items()
        if name not in BULKY or isinstance(value, float)
    }


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        return {name: _rounded(one) for name, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list | tuple) else value


def read(folder: Path) -> Study:
    """The records of `folder`, in the order of classes, columns and seeds.

    Raises:
        DataError: no records, or records that do not belong together.
    """
    records = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    if not records:
        raise DataError(f"{folder}: no records of results in it")
    shared = {(r["experiment"], r["protocol"], json.dumps(r["overrides"], sort_keys=True)) for r in records}
    if len(shared) > 1:
        raise DataError(f"{folder}: its records are of different experiments, protocols or overrides")
    first = records[0]
    epochs = max(record["result"]["job"]["recipe"]["epochs"] for record in records)
    options = Options(Path(DATA), folder, epochs=epochs, protocol=first["protocol"], overrides=first["overrides"])
    return Study(first["experiment"], options, {_task(record): record["result"] for record in records})


def _task(record: Mapping[str, Any]) -> Task:
    job = record["result"]["job"]
    weights = None if job["weights"] == "random" else Path(job["weights"])
    made = Job(
        recipes.from_dict(job["recipe"]),
        job["normal"],
        Path(DATA),
        job["seed"],
        weights,
        weights is None,
        job["authors_protocol"],
    )
    return Task(made, record["column"], record["probe"])
