"""The wheel that `make dist` builds: installed with the base dependencies alone, it judges images without torch."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from fcdd import images

from .conftest import Deployed

ROOT = Path(__file__).parents[1]


def run(*command: object, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: an old build/ or egg-info must not decide what is in it."""
    place = tmp_path_factory.mktemp("dist")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, place)
    shutil.copytree(ROOT / "src", place / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    built = run(sys.executable, "-m", "build", "--wheel", "--no-isolation", folder=place)
    assert built.returncode == 0, built.stderr
    return next((place / "dist").glob("*.whl"))


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment that holds the wheel and its base dependencies, nothing else."""
    place = tmp_path_factory.mktemp("clean")
    venv.create(place)
    python = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    options = ("--quiet", "--no-compile", "-c", ROOT / "constraints.txt")
    done = run(sys.executable, "-m", "pip", "--python", python, "install", *options, wheel, folder=place)
    if "No matching distribution" in done.stderr or "connection" in done.stderr.lower():
        pytest.skip(f"the base dependencies cannot be had here: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return python


def test_the_wheel_holds_every_file_of_the_source(wheel: Path) -> None:
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("fcdd/")}
    source = ROOT / "src"
    files = [path for path in (source / "fcdd").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert inside == {path.relative_to(source).as_posix() for path in files}


def test_the_wheel_brings_its_licence(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    name = next(name for name in archive.namelist() if name.endswith("dist-info/licenses/LICENSE"))
    assert archive.read(name) == (ROOT / "LICENSE").read_bytes()
    metadata = archive.read(name.replace("licenses/LICENSE", "METADATA")).decode()
    assert "License-Expression: Apache-2.0" in metadata


def test_it_judges_images_without_torch(clean: Path, deployed: Deployed, tmp_path: Path) -> None:
    pip = (sys.executable, "-m", "pip", "--python", clean, "--disable-pip-version-check")
    listed = json.loads(run(*pip, "list", "--format", "json", folder=tmp_path).stdout)
    names = {package["name"].lower() for package in listed}
    assert {"fcdd", "onnxruntime", "numpy", "pillow", "typer"} <= names
    assert not names & {"torch", "accelerate", "safetensors", "onnx", "ray", "fastapi", "scipy"}
    shutil.copy(deployed.onnx, tmp_path / "plate.onnx")
    command = clean.with_name("fcdd")
    done = run(command, "predict", "plate.onnx", deployed.plates / "test", "-o", "out", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    with (tmp_path / "out" / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    tested = images.find(deployed.plates / "test")
    wanted = list(deployed.detector.predict(tested))
    assert [row["file"] for row in rows] == [str(path.relative_to(deployed.plates / "test")) for path in tested]
    assert [float(row["score"]) for row in rows] == pytest.approx([result.score for result in wanted], rel=1e-4)
    assert [row["verdict"] for row in rows] == [str(result.verdict) for result in wanted]
    assert len(list((tmp_path / "out" / "overlays").rglob("*.png"))) == len(tested)


def test_what_needs_an_extra_names_it(clean: Path, deployed: Deployed, tmp_path: Path) -> None:
    command = clean.with_name("fcdd")
    done = run(command, "predict", deployed.onnx, deployed.plates, "-o", "out", "--on", "ray", folder=tmp_path)
    assert (done.returncode, "pip install 'fcdd[cluster]'" in done.stderr) == (2, True)
