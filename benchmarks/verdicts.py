"""Can a person see, believe and act on a verdict? `make bench-verdicts DATA=…`, on the classes of MVTec-AD.

The default recipe on good images; then every test image is judged as `fcdd predict` does. Seen: has every image that is
not OK an outlined region, and does it touch the defect? Believed: how many good parts are rejected, as they are and
under other light. Every class is kept as one JSON file, so a stopped benchmark goes on; the table is written from them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fcdd import folders, images
from fcdd.detector.calibration import Rate, Verdict
from fcdd.detector.detector import Detector
from fcdd.detector.settings import Settings

Run = dict[str, Any]
RECIPE = asdict(Settings())  # a class that was run with another one is run again
GAINS = (0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2)  # of the light, on the good test images
INTRODUCTION = """# Verdicts that can be seen and believed

Made by `make bench-verdicts DATA=…` (see `benchmarks/verdicts.py`): the default recipe, good images only, seed 0, every
test image judged as `fcdd predict` does, limits as training set them.
"""


def job(root: Path) -> Run:
    """Train on one class and judge its test images."""
    detector = Detector(Settings(), seed=0).fit(images.find(root / "train" / "good"))
    test = folders.read_test(root)
    judged = []
    for i, (_, result) in enumerate(detector.inspect(test.paths)):
        mask = test.mask_paths[i]
        judged.append(
            {
                "kind": test.kinds[i],
                "good": test.labels[i] == 0,
                "score": result.score,
                "verdict": str(result.verdict),
                "regions": len(result.regions),
                "outlined": float(result.marked.mean()),
                "touches": bool(mask and (images.load_mask(mask) & result.marked).any()),
            }
        )
    good = [images.load(path) for path, label in zip(test.paths, test.labels, strict=True) if label == 0]
    calibration = detector.calibration
    return {
        "class": root.name,
        "recipe": RECIPE,
        "level": calibration.guarantee(calibration.reject).expected,
        "limits": [calibration.limits.review, calibration.limits.reject],
        "calibration": list(calibration.scores),
        "judged": judged,
        "light": {str(gain): lit(detector, good, gain) for gain in GAINS},
    }


def lit(detector: Detector, good: Sequence[NDArray[np.uint8]], gain: float) -> dict[str, Any]:
    """Verdicts on the good images (H, W, 3) as one batch, in a light `gain` times as strong, and what is said of it."""
    lamp = [np.clip(np.round(gain * image), 0, 255).astype(np.uint8) for image in good]
    results = list(detector.predict(lamp))
    looked = detector.looked([result.looks for result in results if result.looks is not None])
    changes = [] if looked is None else [change.words for change in looked.changes]
    return {"verdicts": [str(result.verdict) for result in results], "changes": changes}


def seen(runs: Sequence[Run]) -> str:
    """Verdicts and their places."""
    lines = [
        "## Seen: every verdict has a place\n",
        "*Outlined*: images that are NG or REVIEW and have an outlined region. *Touching*: of the outlined NG defects, "
        "those of which a region touches the mask. *Clear*: good images without any outline.\n",
        "| class | NG | REVIEW | outlined | NG defects | touching the mask | outlined area, median | good | clear |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    sums = np.zeros(8)
    for run in runs:
        judged = run["judged"]
        open_ = [one for one in judged if one["verdict"] != Verdict.OK]
        found = [one for one in judged if one["verdict"] == Verdict.NG and not one["good"] and one["regions"]]
        good = [one for one in judged if one["good"]]
        ng = sum(one["verdict"] == Verdict.NG for one in judged)
        counts = np.array([
            ng, len(open_) - ng, sum(one["regions"] > 0 for one in open_), len(found),
            sum(one["touches"] for one in found), len(good), sum(one["regions"] == 0 for one in good), len(open_),
        ])  # fmt: skip
        sums += counts
        area = np.median([one["outlined"] for one in found]) if found else 0
        lines.append(_seen_row(run["class"], counts, f"{area:.1%}"))
    return "\n".join([*lines, _seen_row("**all**", sums, "")])


def _seen_row(name: str, counts: NDArray[Any], area: str) -> str:
    ng, review, outlined, found, touching, good, clear, open_ = (int(count) for count in counts)
    return (
        f"| {name} | {ng} | {review} | {_share(outlined, open_)} | {found} | {_share(touching, found)} | {area} "
        f"| {good} | {_share(clear, good)} |"
    )


def believed(runs: Sequence[Run]) -> str:
    """The promise, as it is and under other light."""
    lines = [
        "\n## Believed: the promise, and what other light does to it\n",
        "Good test images that are NG, of so many, at the share that is promised on average; the light is so many "
        "times as strong. *Interval*: where the true share of the first column lies with 95 % confidence. A promise "
        "holds for the light of the calibration images only. *!*: the batch was called different from the calibration "
        "images; a hit, but a false alarm in the column × 1.0.\n",
        "| class | promised | as it is | interval | " + " | ".join(f"× {gain}" for gain in GAINS) + " |",
        "|---" * (4 + len(GAINS)) + "|",
    ]
    for run in runs:
        verdicts = [one["verdict"] for one in run["judged"] if one["good"]]
        rejected = verdicts.count("NG")
        interval = str(Rate(rejected, len(verdicts))).partition("between ")[2].partition(",")[0]
        lights = [run["light"][str(gain)] for gain in GAINS]
        rows = [f"{light['verdicts'].count('NG')}{' !' * bool(light['changes'])}" for light in lights]
        lines.append(
            f"| {run['class']} | {run['level']:.1%} | {rejected} of {len(verdicts)} | {interval} | {' | '.join(rows)} |"
        )
    warned = [sum(bool(run["light"][str(gain)]["changes"]) for run in runs) for gain in GAINS]
    lines.append("| **classes warned of** | | | | " + " | ".join(f"{count} of {len(runs)}" for count in warned) + " |")
    return "\n".join(lines) + "\n"


def _share(count: int, total: int) -> str:
    return f"{count / total:.3f} ({count} of {total})" if total else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of MVTec classes")
    parser.add_argument("--output", type=Path, default=Path("docs/results"))
    parser.add_argument("--classes", nargs="*")
    options = parser.parse_args()
    kept = options.output / "runs" / "verdicts"
    kept.mkdir(parents=True, exist_ok=True)
    for name in options.classes or sorted(p.name for p in options.data.iterdir() if (p / "train").is_dir()):
        path = kept / f"{name}.json"
        if not path.exists() or json.loads(path.read_text())["recipe"] != RECIPE:
            path.write_text(json.dumps(_rounded(job(options.data / name)), indent=None) + "\n")
            print(name, flush=True)
    runs = [json.loads(path.read_text()) for path in sorted(kept.glob("*.json"))]
    made = [f"Method: {', '.join(sorted({run['recipe']['method'] for run in runs}))}; classes run: {len(runs)}.\n"]
    (options.output / "verdicts.md").write_text("\n".join([INTRODUCTION, *made, seen(runs), believed(runs)]))


def _rounded(value: Any) -> Any:
    """Numbers with six digits, so that the files stay small."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
