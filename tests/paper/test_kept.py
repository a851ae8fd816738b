"""Kept results: small files from which the same tables come, and the page that is made of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fcdd.errors import DataError
from fcdd.paper import kept, tables
from fcdd.paper.experiments import EXPERIMENTS, publish
from fcdd.paper.grid import Ledger
from fcdd.paper.options import Options

from . import layouts

ROOT = Path(__file__).parents[2]


def test_tables_come_again_from_the_records(tmp_path: Path) -> None:
    data = layouts.fashion_mnist(tmp_path / "data", train=16, test=8)
    overrides = {"batch": 8, "exposure": f"folder:{data / 'aux'}"}
    options = Options(
        data, tmp_path / "out", epochs=1, classes=("trouser", "0"), datasets=("fmnist",), methods=("fcdd", "ae"),
        overrides=overrides, seeds=1,
    )  # fmt: skip
    ledger, tasks = Ledger(options.output), EXPERIMENTS["table1"].plan(options)
    for task in tasks:
        assert ledger.execute(task) == "done", ledger.failure(task)
    report, _ = publish("table1", options, ledger, tasks)
    files = kept.keep(tmp_path / "kept", "table1", options, ledger, tasks)
    assert len(files) == 4
    for path in files:
        record = path.read_text()
        assert str(tmp_path) not in record
        assert len(record) < 5000
        assert {"seconds", "column"} <= set(json.loads(record))
        assert "scores" not in json.loads(record)["result"]
    study = kept.read(tmp_path / "kept")
    assert tables.markdown(study.tables()).replace("DATA", str(data)) == tables.markdown(report.tables)


def test_records_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no records"):
        kept.read(tmp_path)
    for name in ("table1", "table2"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"experiment": name, "protocol": "paper", "overrides": {}}))
    with pytest.raises(DataError, match="different experiments"):
        kept.read(tmp_path)


def test_the_page_is_what_the_records_say(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "benchmarks" / "paper_page.py", tmp_path / "paper.md"], check=True)
    assert (tmp_path / "paper.md").read_text() == (ROOT / "docs/results/paper.md").read_text(), "run `make paper-page`"
