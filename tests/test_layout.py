"""The layout's promises: imports go one way, and what a line PC uses never needs torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "fcdd"

# Layers from the image file to the command; a module may import from its own layer and from earlier ones.
LAYERS = [
    {"errors", "__init__"},
    {"images", "receptive", "metrics", "regions", "colours", "objectives", "interrupt", "progress", "recipe", "seeds"},
    {"settings"},
    {"ray_session"},
    {"calibration", "modelfile", "onnxfile", "networks", "heatmaps", "explain", "geometry"},
    {"result", "report", "data", "anomalies", "checkpoint", "doctor", "methods"},
    {"training", "parallel", "bank", "defects", "judge"},
    {"detector", "runtime", "inspection"},
    {"graph", "precision", "export", "audit"},
    {"commands", "mass", "serve"},
    {"demo"},
    {"experiments"},
    {"cli"},
]
WITHOUT_TORCH = [
    "errors",
    "images",
    "metrics",
    "regions",
    "colours",
    "calibration",
    "doctor",
    "report",
    "result",
    "interrupt",
    "progress",
    "settings",
    "modelfile",
    "onnxfile",
    "data.folder",
    "data.pictures",
    "judge",
    "runtime",
    "inspection",
    "commands",
    "ray_session",
    "mass",
    "cli",
    "serve.server",
]


def layer_of(module: str) -> int:
    return next(i for i, layer in enumerate(LAYERS) if module in layer)


def imported(path: Path) -> set[str]:
    """Top-level names below `fcdd` that a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("fcdd.")}
        elif isinstance(node, ast.ImportFrom) and node.module == "fcdd":
            found |= {a.name for a in node.names if (SOURCE / a.name).is_dir() or (SOURCE / f"{a.name}.py").exists()}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("fcdd."):
            found.add(node.module.split(".")[1])
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_one_way(path: Path) -> None:
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    later = {name for name in imported(path) if layer_of(name) > layer_of(own)}
    assert not later, f"{own} imports from a later layer: {later}"


def test_what_a_line_pc_uses_does_not_import_torch() -> None:
    modules = "; ".join(f"import fcdd.{name}" for name in WITHOUT_TORCH)
    code = f"import sys; import fcdd; {modules}; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
