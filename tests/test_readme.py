"""The README does what it says: its demo, its commands and its Python run here, in order, in one folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text()


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert found, f"README has no {language} block"
    return found.group(1)


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "2"}
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `fcdd demo` has run; the demo's own promises are checked on the way."""
    place = tmp_path_factory.mktemp("newcomer")
    told = json.loads(run([sys.executable, "-m", "fcdd.cli", "demo", "--json"], place))
    assert told["image_auroc"] >= 0.95
    assert told["pixel_auroc"] >= 0.95
    assert (place / told["report"]).exists()
    assert (place / told["picture"]).exists()
    return place


def test_the_commands(folder: Path) -> None:
    for line in block("console").splitlines():
        words = line.partition("#")[0].split()
        assert words[0] == "fcdd"
        run([sys.executable, "-m", "fcdd.cli", *words[1:]], folder)
    for made in ("plate.safetensors", "plate.html", "out/scores.csv", "plate-evaluation.html", "stains/scores.csv"):
        assert (folder / made).exists(), made


def test_the_python(folder: Path) -> None:
    out = run([sys.executable, "-c", block("python")], folder)
    assert "NG" in out
