"""A line PC: a clean environment with the base install alone, in which torch neither is nor is missed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Deployed

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment that holds what `pip install .` brings, and nothing else."""
    root = tmp_path_factory.mktemp("base")
    source = root / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for name in ("pyproject.toml", "README.md", "constraints.txt"):
        shutil.copy(ROOT / name, source)
    subprocess.run([sys.executable, "-m", "venv", root / "venv"], check=True)
    found = root / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", source / "constraints.txt"]
    subprocess.run([found, *install, source], check=True)
    return found


def told(python: Path, *arguments: object) -> str:
    result = subprocess.run([python, *map(str, arguments)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_base_install_is_small(python: Path) -> None:
    listed = json.loads(told(python, "-m", "pip", "--disable-pip-version-check", "list", "--format=json"))
    names = {package["name"].lower() for package in listed} - {"pip", "setuptools", "wheel"}
    assert {"fcdd", "numpy", "pillow", "onnxruntime", "typer", "jinja2"} <= names
    assert not names & {"torch", "safetensors", "onnx", "accelerate", "fastapi", "ray"}
    assert len(names) <= 22, sorted(names)


@pytest.mark.parametrize("command", ["predict", "evaluate", "calibrate", "drift"])
def test_commands_work_on_an_exported_model(command: str, python: Path, deployed: Deployed, tmp_path: Path) -> None:
    good = deployed.plates / "test" / "good"
    arguments: dict[str, list[object]] = {
        "predict": [deployed.plates / "test", "-o", tmp_path / "out"],
        "evaluate": [deployed.plates, "-o", tmp_path / "page.html"],
        "calibrate": [good, "-o", tmp_path / "new.onnx"],
        "drift": [good],
    }
    answer = json.loads(told(python, "-m", "fcdd.cli", command, deployed.onnx, *arguments[command], "--json"))
    expected = {"predict": ("images", 21), "evaluate": ("images", 21), "calibrate": ("calibration", 6)}
    name, value = expected.get(command, ("drifted", False))
    assert answer[name] == value


def test_a_model_that_needs_torch_says_so(python: Path, deployed: Deployed, tmp_path: Path) -> None:
    deployed.detector.save(tmp_path / "m.safetensors")
    good = deployed.plates / "test" / "good"
    arguments = ["-m", "fcdd.cli", "predict", tmp_path / "m.safetensors", good, "-o", tmp_path / "out"]
    result = subprocess.run([python, *arguments], capture_output=True, text=True)
    assert (result.returncode, "needs torch, which is not installed" in result.stderr) == (2, True)
