"""The layout's promises: imports go one way between packages, and what a line PC uses never needs torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "fcdd"

# Layers from the image file to the command; a package may import from its own layer and from earlier ones.
LAYERS = [
    {"errors", "__init__"},
    {"files", "images", "interrupt", "metrics", "outputs", "progress", "regions", "registry", "seeds"},
    {"framing", "modelfile", "reading"},
    {"folders"},
    {"nn", "data"},
    {"anomalies"},
    {"training"},
    {"detector"},
    {"report"},
    {"audit", "batch", "check", "serve"},
    {"paper"},
    {"cli"},
]
WITHOUT_TORCH = [
    "batch.local",
    "batch.on_ray",
    "batch.watch",
    "check",
    "cli",
    "detector",
    "detector.judge",
    "detector.runtime",
    "folders",
    "modelfile",
    "report",
    "report.inspection",
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


@pytest.mark.parametrize("package", sorted({p.relative_to(SOURCE).parts[0] for p in SOURCE.rglob("*.py")}))
def test_imports_go_one_way(package: str) -> None:
    place = SOURCE / package
    own = package.removesuffix(".py")
    if own == "__init__":  # its names are loaded on demand
        return
    for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
        later = {name for name in imported(path) if layer_of(name) > layer_of(own)}
        assert not later, f"{path.relative_to(SOURCE)} imports from a later layer: {later}"


def test_what_a_line_pc_uses_does_not_import_torch() -> None:
    modules = "; ".join(f"import fcdd.{name}" for name in WITHOUT_TORCH)
    checks = "import sys; import fcdd; assert 'onnxruntime' not in sys.modules"
    code = f"{checks}; {modules}; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
