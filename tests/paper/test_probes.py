from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from fcdd import metrics
from fcdd.errors import DataError
from fcdd.paper import probes, watermark
from fcdd.paper.grid import Ledger, Task
from fcdd.paper.model import PaperModel
from fcdd.paper.run import Job, open_split
from fcdd.training import recipe

from . import layouts

SMALL = {
    "network": "cifar", "size": 32, "stored": 32, "augment": "none", "freeze": 0, "pretrained": False, "epochs": 1,
    "batch": 8, "passes": 1,
}  # fmt: skip


def test_pixel_figures_need_masks(tmp_path: Path) -> None:
    job = Job(recipe.load("fmnist"), "trouser", layouts.fashion_mnist(tmp_path / "d"), 0, None)
    with pytest.raises(DataError, match="masks"):
        probes.widths(job, tmp_path)


def test_clever_hans_counts_heat_on_the_mark(tmp_path: Path) -> None:
    job = Job(recipe.load("voc-others", {**SMALL, "sigma": 2.0}), "horse", layouts.voc(tmp_path), 0, None)
    ledger, task = Ledger(tmp_path / "out"), Task(job, "clean", "clever-hans")
    assert ledger.execute(task) == "done", ledger.failure(task)
    result = ledger.result(task)
    assert result is not None
    figures = result["clever-hans"]
    split, model = open_split(job), PaperModel.load(ledger.folder(task) / "model.safetensors")
    assert figures["plain"] == pytest.approx(result["scores"], rel=1e-4)
    # One marked nominal image, counted by hand.
    image, mask = watermark.plant(split.test[torch.tensor([3])][0].permute(1, 2, 0).numpy(), probes.MARK_SEED, "3")
    scores, maps = model.explain(torch.from_numpy(image).permute(2, 0, 1)[None])
    heat = maps[0, 0].numpy()
    assert figures["marked"][3] == pytest.approx(scores.item(), rel=1e-4)
    assert probes._shares(heat, mask)[:2] == pytest.approx((heat[mask].sum() / heat.sum(), mask.mean()))
    labels = np.array(figures["labels"])
    plain, marked = np.array(figures["plain"]), np.array(figures["marked"])
    rise = (marked - plain)[labels == 1].mean() / plain[labels == 0].std()
    assert figures["anomalous"]["rise"] == pytest.approx(rise, rel=1e-4)
    assert figures["auroc_marked_nominal"] == metrics.auroc(np.where(labels == 1, plain, marked), labels)


def test_the_box_is_around_the_letters() -> None:
    heat, mask = np.zeros((10, 10), np.float32), np.zeros((10, 10), bool)
    heat[2:4, 2:4] = 1.0
    heat[9, 9] = 4.0
    mask[2, 2] = mask[3, 3] = True
    assert probes._shares(heat, mask) == pytest.approx((2 / 8, 2 / 100, 4 / 8, 4 / 100))
