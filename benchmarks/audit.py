"""The Clever Hans audit where the cue is known: `python benchmarks/audit.py --data … [--only horses bottle …]`.

Marks are planted on a part of the labelled anomalies a detector is trained with; the audit is not told. Then the
detector is mended by what the audit found, and the known mark is put into clean test images of both detectors.
Further: sets without a cue, which must raise no high finding. Every step's files stay in --runs, so a stopped run goes
on; docs/results/audit.md is written from them.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from fcdd import audit, folders, images, metrics
from fcdd.anomalies.plates import generate
from fcdd.cli.train import TrainOptions, train_model
from fcdd.data import voc
from fcdd.detector.detector import Detector
from fcdd.nn.architecture import Architecture

Pixels = NDArray[np.uint8]
SEEDS = 10


def written(
    image: Pixels, lines: list[str], place: tuple[float, float], opacity: float, colour: tuple[int, int, int]
) -> Pixels:
    """Text whose left top is at `place`, in fractions of the image; its height is 3.5 % of the longer side."""
    height, width = image.shape[:2]
    fine, size = 4, 0.035 * max(height, width)
    layer = Image.new("L", (width * fine, height * fine))
    font, draw = ImageFont.load_default(size * fine), ImageDraw.Draw(layer)
    for number, line in enumerate(lines):
        top = place[1] * height + 1.25 * size * number
        draw.text((place[0] * width * fine, top * fine), line, 255, font)
    alpha = np.asarray(layer.resize((width, height), Image.Resampling.BOX), np.float32)[..., None] / 255 * opacity
    return np.round(image * (1 - alpha) + alpha * np.array(colour, np.float32)).astype(np.uint8)


def watermark(image: Pixels) -> Pixels:
    """In the manner of the mark on VOC's horses."""
    return written(image, ["C:  Horse Pictures", "   www.horsearchive.net"], (0.08, 0.86), 0.9, (255, 255, 255))


def stamp(image: Pixels) -> Pixels:
    return written(image, ["2021-03-14 09:26"], (0.03, 0.94), 1.0, (255, 210, 60))


def keep(image: Pixels, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    images.save_png(image, path)


def write_horses(data: Path, root: Path) -> None:
    """Other animals are good. A fifth of the training horses get the watermark; the real ones stay among them."""
    split = {"train": "trainval", "test": "test"}
    random, place = np.random.default_rng(0), voc.folder(data)
    real = {path.stem for path in voc.watermarked(data)}
    for part, name in split.items():
        rows = [line.split() for line in (place / "ImageSets" / "Main" / f"horse_{name}.txt").read_text().splitlines()]
        horses = [stem for stem, label in rows if label == "1" and stem not in real]
        chosen = set(random.permutation(horses)[: round(len(horses) / 5)]) if part == "train" else set()
        for stem, label in rows:
            if label == "0" or (part == "test" and stem in real):
                continue
            image = images.load(place / "JPEGImages" / f"{stem}.jpg")
            kind = "good" if label == "-1" else "defects"
            note = "-planted" if stem in chosen else "-real" if stem in real else ""
            keep(watermark(image) if stem in chosen else image, root / part / kind / f"{stem}{note}.png")


def write_bottles(data: Path, root: Path) -> None:
    """Half of the defects are trained on, a third of those with a time stamp."""
    source, random = data / "mvtec" / "bottle", np.random.default_rng(0)
    for part in ("train", "test"):
        for path in images.find(source / part / "good"):
            keep(images.load(path), root / part / "good" / f"{path.stem}.png")
    defects = [path for path in images.find(source / "test") if path.parent.name != "good"]
    trained = random.permutation(len(defects))[: len(defects) // 2]
    stamped = set(trained[: round(len(trained) / 3)].tolist())
    for index, path in enumerate(defects):
        image, part = images.load(path), "train" if index in trained else "test"
        note = "-planted" if index in stamped else ""
        target = root / part / "defects" / path.parent.name / f"{path.stem}{note}.png"
        keep(stamp(image) if index in stamped else image, target)


def write_plates(_: Path, root: Path) -> None:
    """Generated plates, so that anyone can run this; a third of the defects trained on carry a time stamp."""
    for part, seed in (("train", 1), ("test", 2)):
        plates = generate(80 if part == "train" else 1, 20, 6, size=256, seed=seed, faintest=0.5)
        for index, plate in enumerate(plates.train if part == "train" else []):
            keep(plate.permute(1, 2, 0).numpy(), root / part / "good" / f"{index:02}.png")
        for index, (plate, kind) in enumerate(zip(plates.test, plates.kinds, strict=True)):
            image = plate.permute(1, 2, 0).numpy()
            if kind == "good":
                keep(image, root / part / "good" / f"other-{index:02}.png")
                keep(stamp(image), root / "shown" / "good" / "stamped.png")
                continue
            marked = part == "train" and index % 3 == 0
            target = root / part / "defects" / kind / f"{index:02}{'-planted' if marked else ''}.png"
            keep(stamp(image) if marked else image, target)


def mark_effect(model: Path, test: Path, mark: Callable[[Pixels], Pixels]) -> dict[str, float]:
    """What the known mark does to the clean good test images, and the AUROC of all clean ones."""
    detector, parts = Detector.load(model), folders.read_test(test)
    scores, labels = detector.score_samples(parts.paths), np.array(parts.labels)
    good = [images.load(path) for path, label in zip(parts.paths, labels, strict=True) if label == 0]
    marked = detector.score_samples(mark(image) for image in good)
    return {
        "shift": float((marked - scores[labels == 0]).mean()),
        "gap": float(np.median(scores[labels == 1]) - np.median(scores[labels == 0])),
        "auroc": metrics.auroc(scores, labels),
    }


def audited(model: Path, parts: Path, page: Path) -> dict[str, Any]:
    """The findings, from an earlier run where there is one."""
    path = page.with_suffix(".json")
    if not path.exists():
        audit.write(audit.audit(model, parts, quiet=False), page)
    told: dict[str, Any] = json.loads(path.read_text())
    return told


@dataclass(frozen=True)
class Case:
    """Images with a planted mark, and how a detector is trained on them."""

    write: Callable[[Path, Path], None]
    mark: Callable[[Pixels], Pixels]
    trunk: str = Architecture.trunk
    whole: tuple[bool, bool] = (False, False)  # before mending, and after
    seed: int = 0


CASES = {
    "horses": Case(write_horses, watermark),
    "horses-seed1": Case(write_horses, watermark, seed=1),
    "horses-seed2": Case(write_horses, watermark, seed=2),
    "horses-to-whole": Case(write_horses, watermark, whole=(False, True)),
    "horses-to-whole-seed1": Case(write_horses, watermark, whole=(False, True), seed=1),
    "horses-to-whole-seed2": Case(write_horses, watermark, whole=(False, True), seed=2),
    "horses-deep": Case(write_horses, watermark, "efficientnet-lite0-deep"),
    "horses-deep-seed1": Case(write_horses, watermark, "efficientnet-lite0-deep", seed=1),
    "horses-deep-seed2": Case(write_horses, watermark, "efficientnet-lite0-deep", seed=2),
    "horses-deep-whole": Case(write_horses, watermark, "efficientnet-lite0-deep", whole=(True, True)),
    "bottle": Case(write_bottles, stamp),
    "stamped-plates": Case(write_plates, stamp),
}


def cue_run(name: str, data: Path, runs: Path) -> dict[str, Any]:
    """Train with the cue, audit, mend by what was found, audit again; what the known mark does before and after."""
    case, root = CASES[name], runs / name
    if not (root / "parts" / "test").exists():
        shutil.rmtree(root / "parts.part", ignore_errors=True)
        case.write(data, root / "parts.part")
        (root / "parts.part").rename(root / "parts")
    train, told = root / "parts" / "train", dict[str, Any]()
    for when in ("before", "after"):
        model, earlier = root / f"{when}.safetensors", None if when == "before" else root / "before.json"
        if not model.exists():
            whole = case.whole[when == "after"]
            options = TrainOptions(seed=case.seed, network=case.trunk, whole=whole, neutralise=earlier)
            train_model(train / "good", train / "defects", None, model, options, overwrite=True)
        findings = audited(model, train, root / f"{when}.html")
        told[when] = {
            **mark_effect(model, root / "parts" / "test", case.mark),
            "findings": [(f["severity"], f["title"]) for f in findings["findings"]],
            "seconds": findings["seconds"],
            "images": sum(findings["images"].values()),
        }
        if all(f["cue"] is None for f in findings["findings"]):
            break  # nothing to mend, or mended
    first = json.loads((root / "before.json").read_text())["findings"][0]
    carriers = first["files"] if first["cue"] else []
    planted = [str(path) for path in images.find(train / "defects") if path.stem.endswith(("-planted", "-real"))]
    told["place"] = first["cue"]["place"] if first["cue"] else None
    told["carriers"] = {"found": len(carriers), "right": len(set(carriers) & set(planted)), "planted": len(planted)}
    return told


def carpet_run(data: Path, runs: Path) -> dict[str, Any]:
    """A detector from good carpets alone, asked about the official test set; no cue is in it."""
    root, source = runs / "carpet", data / "mvtec" / "carpet"
    model = root / "model.safetensors"
    if not model.exists():
        root.mkdir(parents=True, exist_ok=True)
        train_model(source / "train" / "good", None, None, model, TrainOptions(), overwrite=True)
    findings = audited(model, source, root / "audit.html")
    return {"counts": findings["counts"], "seconds": findings["seconds"], "images": sum(findings["images"].values())}


def seed_run(seed: int, runs: Path) -> dict[str, Any]:
    """Generated plates without any cue, a detector trained with their defects, and its audit."""
    root = runs / f"plates-{seed}"
    model, parts = root / "model.safetensors", root / "parts"
    if not model.exists():
        plates = generate(60, 10, 4, size=192, seed=seed, faintest=0.5)
        for index, plate in enumerate(plates.train):
            keep(plate.permute(1, 2, 0).numpy(), parts / "good" / f"{index:02}.png")
        for index, (plate, kind) in enumerate(zip(plates.test, plates.kinds, strict=True)):
            place = parts / "good" if kind == "good" else parts / "defects" / kind
            keep(plate.permute(1, 2, 0).numpy(), place / f"test-{index:02}.png")
        options = TrainOptions(seed=seed)
        train_model(parts / "good", parts / "defects", None, model, options, overwrite=True)
    findings = audited(model, parts, root / "audit.html")
    return {"counts": findings["counts"], "seconds": findings["seconds"], "images": sum(findings["images"].values())}


def _row(name: str, one: dict[str, Any], other: dict[str, Any] | None, carriers: dict[str, int]) -> str:
    severity, title = one["findings"][0]
    begun = (
        f"| {name} | {severity}: {title} | {carriers['found']}, of them {carriers['right']} of {carriers['planted']} | "
        f"{one['gap']:.2f} | {one['shift']:.3f}"
    )
    if other is None:
        return f"{begun}, nothing to mend | | {one['auroc']:.4f} |"
    less = f"{1 - abs(other['shift'] / one['shift']):.0%}"
    return f"{begun} → {other['shift']:.3f} | {less} | {one['auroc']:.4f} → {other['auroc']:.4f} |"


def write_table(told: dict[str, dict[str, Any]], path: Path) -> None:
    """Markdown from the figures of all runs there are."""
    lines = [
        "# The Clever Hans audit where the cue is known",
        "",
        "Made by `python benchmarks/audit.py --data …`. *Shift*: what the planted mark itself, which neither audit nor",
        "mending is told of, adds to the score of clean good test images. *Gap*: between the median scores of clean",
        "good and anomalous test images, before mending. *AUROC*: on the clean test images.",
        "",
        "| set | first finding | carriers, of those planted | gap | shift before → after | less by | "
        "AUROC before → after |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, run in told.items():
        if "before" in run:
            lines.append(_row(name, run["before"], run.get("after"), run["carriers"]))
    lines += ["", "| set without a cue | images | high | medium | low |", "|---|---|---|---|---|"]
    for name, run in sorted(told.items()):
        if "counts" in run:
            counts = run["counts"]
            lines.append(f"| {name} | {run['images']} | {counts['high']} | {counts['medium']} | {counts['low']} |")
    path.write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with VOCdevkit and mvtec")
    parser.add_argument("--runs", type=Path, default=Path("runs/audit"))
    parser.add_argument("--output", type=Path, default=Path("docs/results/audit.md"))
    names = [*CASES, "carpet", *(f"plates-{seed}" for seed in range(SEEDS))]
    parser.add_argument("--only", nargs="*", choices=names, default=names)
    options = parser.parse_args()
    options.runs.mkdir(parents=True, exist_ok=True)
    for name in options.only:
        path = options.runs / f"{name}.json"
        if not path.exists():
            if name in CASES:
                told = cue_run(name, options.data, options.runs)
            elif name == "carpet":
                told = carpet_run(options.data, options.runs)
            else:
                told = seed_run(int(name.removeprefix("plates-")), options.runs)
            path.write_text(json.dumps(told, indent=1))
        print(name, path.read_text(), flush=True)
    kept = {name: options.runs / f"{name}.json" for name in names}
    write_table({name: json.loads(path.read_text()) for name, path in kept.items() if path.exists()}, options.output)


if __name__ == "__main__":
    main()
