"""Write docs/results/paper.md, or the file named, from the results that are kept: `make paper-page`. Nothing is run.

A folder below docs/results/runs/paper is a section: `about.md` is its text, the records beside it make its tables.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fcdd.paper import kept, tables

RESULTS = Path(__file__).parents[1] / "docs" / "results"
INTRODUCTION = """# The paper's experiments, measured here

Each section is made from the small files of its finished jobs in `docs/results/runs/paper` by `make paper-page`; a file
has the job's figures, recipe, class, seed, data and time. Budgets are a small part of the paper's; every table says
which. ImageNet-30 cannot be measured with the data here: the code runs on folders in the official layout (tests), and
Imagenette is its stand-in. The figures of an experiment are made by the same command and not kept where a licence
forbids it; those of Fashion-MNIST are in the [gallery](../gallery.md).
"""


def page(folder: Path) -> str:
    """The whole page of the sections below `folder`, in the order of their names."""
    sections = [INTRODUCTION]
    for study in sorted(path.parent for path in folder.glob("*/about.md")):
        about = (study / "about.md").read_text().strip()
        parts = tables.markdown(kept.read(study).tables()) if list(study.glob("*.json")) else ""
        sections.append(f"{about}\n\n{parts.replace('## ', '### ')}".strip() + "\n")
    return "\n".join(sections)


if __name__ == "__main__":
    Path(sys.argv[1] if sys.argv[1:] else RESULTS / "paper.md").write_text(page(RESULTS / "runs" / "paper"))
