"""The contributor's page does what it says: its files, put into a copy of the source, work without any other change."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text()
USES = {
    "dataset": """
from pathlib import Path
from fcdd.data import DATASETS
from fcdd.paper.run import Job, run
from fcdd.training import recipe
from fcdd import load
assert "squares" in DATASETS
result = run(Job(recipe.load("squares"), "dim", Path("."), 0, None), Path("job"), quiet=True)
assert result["name"] == "squares/dim"
assert 0 <= result["image_auroc"] <= 1
assert load("job/model.safetensors").grid.shape == (28, 28)
""",
    "loss": """
import torch
from fcdd.training import recipe
from fcdd.training.losses import LOSSES
from fcdd.training.methods import Batch
assert recipe.load("fmnist", {"objective": "capped"}).objective == "capped"
batch = Batch(torch.zeros(2, 1, 4, 4), torch.tensor([0.0, 1.0]), torch.zeros(2, 1, 4, 4))
huge = LOSSES["capped"].of(torch.full((2, 1, 2, 2), 1000.0), None, batch)
assert abs(float(huge) - 5) < 0.01, huge
""",
    "trunk": """
import numpy as np
from fcdd import Detector
from fcdd.detector.settings import Settings
from fcdd.nn.architecture import Architecture
random = np.random.default_rng(0)
good = [random.integers(100, 120, (64, 64, 3), dtype=np.uint8) for _ in range(16)]
small = Settings(Architecture("shallow", planes=2, directions=2), smallest=64, largest=64, vectors=1000)
detector = Detector(small).fit(good)
bad = good[0].copy()
bad[20:40, 20:40] = 255
assert detector.predict(bad).score > 2 * max(detector.calibration.scores)
""",
    "defect": """
import torch
from fcdd.anomalies.synthetic import KINDS, mixture
assert "hole" in KINDS
images, masks = mixture(torch.full((4, 3, 64, 64), 0.5), torch.Generator().manual_seed(0), kinds=["hole"])
assert masks.flatten(1).any(1).all()
assert float(images.min()) == 0
""",
    "experiment": """
from pathlib import Path
from fcdd.paper.experiments import EXPERIMENTS
from fcdd.paper.options import Options
tasks = EXPERIMENTS["dimensions"].plan(Options(data=Path("."), output=Path("out"), budget="smoke"))
assert sorted({task.job.recipe.dimensions for task in tasks}) == [1, 8, 32]
""",
}


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source with the page's files in it."""
    place = tmp_path_factory.mktemp("extended")
    shutil.copytree(ROOT / "src", place / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for title, content in re.findall(r'```\w+ title="([^"]+)"\n(.*?)```', PAGE, re.DOTALL):
        assert not (place / title).exists(), f"{title} is there already"
        (place / title).write_text(content)
    return place


@pytest.mark.parametrize("change", USES)
def test_a_change_works(change: str, scratch: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(scratch / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", USES[change]], cwd=scratch, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_page_s_files_are_in_the_house_s_style(scratch: Path) -> None:
    titles = re.findall(r'```python title="([^"]+)"', PAGE)
    subprocess.run([sys.executable, "-m", "ruff", "check", *titles], cwd=scratch, check=True)
