"""A model depends on its images and its seed: not on the number of threads, and hardly on the processor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fcdd import images
from fcdd.detector.detector import Detector
from fcdd.detector.settings import Settings
from fcdd.nn.architecture import Architecture

from ..plates import write_plates

SMALL = Architecture(planes=8, directions=4)
NETWORKS = {"nominal": SMALL, "fcdd": None, "sum": Architecture(planes=8, directions=4, dimensions=8, centres=100)}
# Another set of instructions for everything in torch: its own loops, oneDNN's and MKL's.
OTHER = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_plates(tmp_path_factory.mktemp("plates"), train=20, good=4, defects=2)


def train(root: Path, method: str, model: Path) -> Path:
    """A small model of the plates; of method nominal, with a head that learns from labelled defects."""
    settings = Settings(method=method, architecture=NETWORKS[method], smallest=96, largest=96, vectors=2000)
    Detector(settings).fit(root / "train/good", root / "test/stain" if method == "nominal" else None).save(model)
    return model


@pytest.fixture(scope="module")
def elsewhere(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models by method, trained where torch has other instructions."""
    folder = tmp_path_factory.mktemp("elsewhere")
    script = f"from {__name__} import *\nfor m in NETWORKS: train(Path({str(root)!r}), m, Path({str(folder)!r}) / m)"
    here = Path(__file__).parents[__name__.count(".")]
    subprocess.run([sys.executable, "-c", script], check=True, env=os.environ | OTHER, cwd=here)
    return folder


@pytest.mark.parametrize("method", NETWORKS)
def test_the_number_of_threads_does_not_matter(root: Path, tmp_path: Path, method: str) -> None:
    threads, models = torch.get_num_threads(), set()
    try:
        for number in (1, 2, 4):
            torch.set_num_threads(number)
            models.add(train(root, method, tmp_path / method).read_bytes())
    finally:
        torch.set_num_threads(threads)
    assert len(models) == 1


@pytest.mark.parametrize("method", NETWORKS)
def test_verdicts_do_not_depend_on_the_processor(root: Path, elsewhere: Path, tmp_path: Path, method: str) -> None:
    tested = images.find(root / "test")
    here, there = (
        list(Detector.load(model).predict(tested))
        for model in (train(root, method, tmp_path / method), elsewhere / method)
    )
    assert [result.score for result in here] == pytest.approx([result.score for result in there], rel=0.02)
    assert [result.verdict for result in here] == [result.verdict for result in there]
    assert len({result.verdict for result in here}) > 1
