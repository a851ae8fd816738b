"""Run the notebook beside this file and write it with what it shows: in place, or to the path that is given."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).with_name("plates.ipynb")
SECONDS = 600  # for one cell; the slowest takes about 30 on two cores


def execute(source: Path, target: Path) -> None:
    """Run every cell of `source` in order, in an empty folder, and write the result to `target`."""
    notebook = nbformat.read(source, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        # Times of each cell would change the file with every run.
        client = NotebookClient(
            notebook,
            timeout=SECONDS,
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": folder}},
        )
        client.execute()
    for cell in notebook.cells:
        # Warnings name paths of the machine that this ran on; what the cells are meant to show is not among them.
        cell["outputs"] = [one for one in cell.get("outputs", []) if one.get("name") != "stderr"]
        if cell.cell_type != "code":
            del cell["outputs"]
    nbformat.write(notebook, target)


if __name__ == "__main__":
    execute(NOTEBOOK, Path(sys.argv[1]) if sys.argv[1:] else NOTEBOOK)
