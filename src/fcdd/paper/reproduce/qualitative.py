"""The qualitative figures, and the Clever Hans study with its figures in numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from fcdd.paper import figures, watermark
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.model import PaperModel
from fcdd.paper.probes import MARK_SEED
from fcdd.paper.reproduce.notes import Results, facts, gather
from fcdd.paper.reproduce.options import Options
from fcdd.paper.reproduce.report import Report
from fcdd.paper.run import open_split
from fcdd.paper.tables import Cell, Table
from fcdd.training.recipe import load

ROWS = {"fcdd": "FCDD", "hsc": "gradient (HSC)", "ae": "autoencoder"}
SHOWN = 6  # columns of nominal images, and as many of anomalous ones
MARKED, CLEAN = "trained with the mark", "trained without it"


def heatmaps_plan(options: Options) -> list[Task]:
    datasets = options.chosen(["fmnist", "cifar10", "imagenet", "mvtec"], "datasets")
    options.check_classes(datasets)
    # One seed: pictures have no mean.
    one = replace(options, seeds=1)
    return [
        task
        for dataset in datasets
        for method in options.chosen(list(ROWS), "methods")
        for task in one.tasks(
            dataset, options.classes_of(dataset), method, {} if method == "fcdd" else {"method": method}
        )
    ]


def heatmaps_report(options: Options, ledger: Ledger, tasks: Sequence[Task]) -> Report:
    """Four sheets a class: the contrast curve over the row or over each map alone, baselines blurred or not."""
    results = gather(ledger, tasks)
    problems = dict.fromkeys((task.job.recipe.dataset, task.job.normal) for task in results)
    shown: list[Path] = []
    for dataset, normal in problems:
        own = {t.column: t for t in results if (t.job.recipe.dataset, t.job.normal) == (dataset, normal)}
        for local in (False, True):
            for blur in (True, False):
                name = (
                    f"heatmaps-{dataset}-{normal}-{'local' if local else 'global'}-{'blurred' if blur else 'raw'}.png"
                )
                path = options.output / name.replace(" ", "_")
                _sheet(path, ledger, results, own, local=local, blur=blur)
                shown.append(path)
    cells = {
        f"{dataset} {normal}": [_auc(results, dataset, normal, method) for method in ROWS]
        for dataset, normal in problems
    }
    notes = [
        *facts(options, results, tasks),
        "Columns by increasing FCDD score, nominal images left, anomalous right. global: contrast over all maps of a "
        "row; local: each map by itself; blurred: gradient and autoencoder maps smoothed by the recipe's σ.",
    ]
    return Report([Table("AUC of the models shown", "problem", list(ROWS.values()), cells, notes)], shown)


def _auc(results: Results, dataset: str, normal: str, method: str) -> Cell:
    own = [
        task for task in results if (task.job.recipe.dataset, task.job.normal, task.column) == (dataset, normal, method)
    ]
    return Cell({task.job.seed: results[task]["image_auroc"] for task in own})


def _sheet(path: Path, ledger: Ledger, results: Results, own: dict[str, Task], *, local: bool, blur: bool) -> None:
    """Rows input, one a method, truth."""
    first = own.get("fcdd", next(iter(own.values())))
    scores, split, size = results[first]["scores"], open_split(first.job), first.job.recipe.size
    shown = [index for label in (0, 1) for index in figures.spread(scores, split.labels, label, SHOWN)]
    images = split.test[torch.tensor(shown)]
    rows: dict[str, Any] = {"input": figures.inputs(first.job.recipe, images)}
    for method, task in own.items():
        model = PaperModel.load(ledger.folder(task) / "model.safetensors")
        model = replace(model, recipe=replace(model.recipe, blur=blur))
        rows[ROWS[method]] = figures.heat(model, images, local=local)
    if masks := figures.truth(split, shown, size):
        rows["truth"] = masks
    figures.sheet(path, rows, [f"{split.kinds[index]} {scores[index]:.2g}" for index in shown])


def hans_plan(options: Options) -> list[Task]:
    """One model on horses of which a fifth bear a planted mark, and one on the same horses without it."""
    options.check_classes(["voc"])
    size = load("voc", options.overrides).stored
    planted = watermark.plant_voc(options.data, options.output / "data" / "voc-marked", size)
    return [
        task
        for variant, data in ((MARKED, planted), (CLEAN, options.data))
        for task in replace(options, data=data).tasks("voc", ["horse"], variant, probe="clever-hans")
    ]


def hans_report(options: Options, ledger: Ledger, tasks: Sequence[Task]) -> Report:
    results = gather(ledger, tasks)
    record = json.loads(next((options.output / "data" / "voc-marked").glob(f"VOC*/{watermark.RECORD}")).read_text())
    rows: dict[str, list[Cell]] = {}
    for kind, who in (("anomalous", "marked horses"), ("other", "marked other images")):
        for region, what in (("letters", "the letters"), ("box", "the box around them")):
            rows[f"{who}: share of heat on {what}"] = _cells(results, kind, f"{region}_heat")
            rows[f"{who}: share of area of {what}"] = _cells(results, kind, f"{region}_area")
        rows[f"{who}: rise of the score by the mark, in standard deviations"] = _cells(results, kind, "rise")
    rows["AUC, horses against others, no marks"] = _cells(results, "", "auroc")
    rows["AUC, horses without against others with the mark"] = _cells(results, "", "auroc_marked_nominal")
    marked = (
        f"The mark {record['text']!r} is on {len(record['marked'])} of {record['of']} training horses and nowhere else."
    )
    notes = [*facts(options, results, tasks), marked, "The paper gives no figures for this study, only pictures."]
    table = Table("Clever Hans: what a watermark on training horses does", "figure", [MARKED, CLEAN], rows, notes)
    return Report([table], _hans_sheets(options, ledger, results))


def _cells(results: Results, kind: str, name: str) -> list[Cell]:
    def value(result: dict[str, Any]) -> float:
        probed = result["clever-hans"]
        return float(probed[kind][name] if kind else probed[name])

    return [
        Cell({task.job.seed: value(result) for task, result in results.items() if task.column == variant})
        for variant in (MARKED, CLEAN)
    ]


def _hans_sheets(options: Options, ledger: Ledger, results: Results) -> list[Path]:
    """For each variant, horses by increasing score, then the same images with the mark."""
    shown: list[Path] = []
    for variant, name in ((MARKED, "marked"), (CLEAN, "clean")):
        task = next((task for task in results if task.column == variant), None)
        if task is None:
            continue
        probed, split = results[task]["clever-hans"], open_split(task.job)
        chosen = [i for label in (0, 1) for i in figures.spread(probed["plain"], split.labels, label, SHOWN)]
        images = split.test[torch.tensor(chosen)]
        planted = torch.stack(
            [
                torch.from_numpy(watermark.plant(image.permute(1, 2, 0).numpy(), MARK_SEED, str(index))[0]).permute(
                    2, 0, 1
                )
                for index, image in zip(chosen, images, strict=True)
            ]
        )
        model = PaperModel.load(ledger.folder(task) / "model.safetensors")
        heat = figures.heat(model, torch.cat([images, planted]))
        rows = {
            "input": figures.inputs(task.job.recipe, images),
            "FCDD": heat[: len(chosen)],
            "with the mark": figures.inputs(task.job.recipe, planted),
            "FCDD with the mark": heat[len(chosen) :],
        }
        path = options.output / f"clever-hans-{name}.png"
        figures.sheet(path, rows, [f"{split.kinds[i]} {probed['plain'][i]:.2g}" for i in chosen])
        shown.append(path)
    return shown
