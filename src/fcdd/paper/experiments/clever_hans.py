"""The Clever Hans study: horses of PASCAL VOC, of which a fifth bear a planted watermark in training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from fcdd.paper import figures, watermark
from fcdd.paper.experiments import EXPERIMENTS, Experiment
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.options import Options
from fcdd.paper.probes import MARK_SEED, real_marks
from fcdd.paper.results import Results, facts, model_of
from fcdd.paper.run import open_split
from fcdd.paper.tables import Cell, Table
from fcdd.training.recipe import load

MARKED, CLEAN = "trained with the mark", "trained without it"
PLANTED = Path("data") / "voc-planted"  # below the output folder
SHOWN = 6  # columns of nominal images, and as many of horses


def plan(options: Options) -> list[Task]:
    """One model on horses of which a fifth bear a planted mark, and one on the same horses without it.

    Nominal are ImageNet's images, as in the paper, or with `--datasets voc-others` VOC's images without a horse.
    """
    dataset = options.chosen(["voc", "voc-others"], "datasets")[0]
    options.check_classes([dataset])
    size = load(dataset, options.overrides).stored
    planted = watermark.plant_voc(options.data, options.output / PLANTED, size)
    return [
        task
        for variant, data in ((MARKED, planted), (CLEAN, options.data))
        for task in replace(options, data=data).tasks(dataset, ["horse"], variant, probe="clever-hans")
    ]


def tables(options: Options, results: Results, tasks: Sequence[Task]) -> list[Table]:
    """What the mark does to heat and score, in numbers; the paper gives none."""
    rows: dict[str, list[Cell]] = {}
    for kind, who in (("anomalous", "marked horses"), ("other", "marked other images")):
        for region, what in (("letters", "the letters"), ("box", "the box around them")):
            rows[f"{who}: share of heat on {what}"] = _cells(results, kind, f"{region}_heat")
            rows[f"{who}: share of area of {what}"] = _cells(results, kind, f"{region}_area")
        rows[f"{who}: rise of the score by the mark, in standard deviations"] = _cells(results, kind, "rise")
    rows["AUC, horses against others, no marks"] = _cells(results, "", "auroc")
    rows["AUC, horses without against others with the mark"] = _cells(results, "", "auroc_marked_nominal")
    real = "the place of the real mark, lower left: share of"
    rows[f"{real} heat, horses that bear it"] = _cells(results, "real", "marked")
    rows[f"{real} heat, test horses without"] = _cells(results, "real", "unmarked")
    rows[f"{real} area"] = _cells(results, "real", "area")
    notes = [*facts(options, results, tasks), *_told(results)]
    return [Table("Clever Hans: what a watermark on training horses does", "figure", [MARKED, CLEAN], rows, notes)]


def _told(results: Results) -> list[str]:
    probed = [result["clever-hans"] for task, result in results.items() if task.column == MARKED]
    told = ["The paper gives no figures for this study, only images."]
    if probed:
        told.append(
            f"The mark {watermark.TEXT!r} is on {probed[0]['planted']} of {probed[0]['horses']} training horses and "
            "nowhere else."
        )
    if probed and probed[0]["real"]:
        told.append(
            f"{probed[0]['real']['images']:.0f} horses bear a photographer's real mark; they are neither in training "
            "nor among the test images of either model."
        )
    return told


def _cells(results: Results, kind: str, name: str) -> list[Cell]:
    def value(result: dict[str, Any]) -> float:
        probed = result["clever-hans"]
        return float(probed[kind][name] if kind else probed[name])

    known = {task: result for task, result in results.items() if not kind or name in result["clever-hans"][kind]}
    return [
        Cell({task.job.seed: value(result) for task, result in known.items() if task.column == variant})
        for variant in (MARKED, CLEAN)
    ]


def sheets(options: Options, ledger: Ledger, results: Results) -> list[Path]:
    """For each variant images by rising score, the same with the mark, and horses that bear a real one (Figure 8).

    The contrast curve refers to the complete balanced test set, as in the paper's Figure 8.
    """
    shown: list[Path] = []
    for variant, name in ((MARKED, "marked"), (CLEAN, "clean")):
        task = next((task for task in results if task.column == variant), None)
        if task is None:
            continue
        scores, split = results[task]["clever-hans"]["plain"], open_split(task.job)
        chosen = [i for label in (0, 1) for i in figures.spread(scores, split.labels, label, SHOWN)]
        images = split.test[torch.tensor(chosen)]
        pairs = [
            watermark.plant(image.permute(1, 2, 0).numpy(), MARK_SEED, str(index))
            for index, image in zip(chosen, images, strict=True)
        ]
        planted = torch.stack([torch.from_numpy(marked).permute(2, 0, 1) for marked, _ in pairs])
        model = model_of(ledger, task)
        reference = figures.balanced_contrast(model, split)
        rows = {
            "input": figures.inputs(task.job.recipe, images),
            "FCDD": figures.heat(model, images, reference),
            "with the mark": figures.inputs(task.job.recipe, planted),
            "FCDD with the mark": figures.heat(model, planted, reference),
        }
        path = options.output / f"clever-hans-{name}.png"
        figures.sheet(path, rows, [f"{split.kinds[i]} {scores[i]:.2g}" for i in chosen])
        shown.append(path)
        real = real_marks(task.job)
        if len(real):
            images = real[torch.arange(len(real))]
            rows = {
                "real mark": figures.inputs(task.job.recipe, images),
                "FCDD": figures.heat(model, images, reference),
            }
            shown.append(options.output / f"clever-hans-{name}-real.png")
            figures.sheet(shown[-1], rows, [path.stem for path in real.paths])
    return shown


EXPERIMENTS.register("clever-hans")(
    Experiment("Clever Hans: horses of PASCAL VOC with a planted watermark", plan, tables, sheets)
)
