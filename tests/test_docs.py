"""The documentation holds together: the site builds, loads nothing from elsewhere, and names what exists."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import nbformat
import pytest
import yaml

import fcdd

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
NOTEBOOK = ROOT / "examples" / "plates.ipynb"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make docs` builds; strict, so that a link that leads nowhere ends it."""
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(place)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return place


def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        text = page.read_text()
        loaded = re.findall(r"<(?:script|img|iframe|source)\b[^>]*?\bsrc=[\"']?([^\"' >]+)", text)
        loaded += re.findall(r"<link\b[^>]*?rel=[\"']?(?:stylesheet|icon|preconnect)[^>]*?href=[\"']?([^\"' >]+)", text)
        assert not [address for address in loaded if re.match(r"(https?:)?//", address)], page
        assert 'class="mermaid"' not in text  # its renderer would be fetched


def test_the_reference_shows_what_docstrings_say(site: Path) -> None:
    text = (site / "reference" / "detector.html").read_text()
    for name in ("fcdd.detector.load", "fcdd.detector.detector.Detector.fit", "fcdd.detector.judge.Judge.predict"):
        assert f'id="{name}"' in text, name
    assert "&gt;&gt;&gt; &gt;&gt;&gt;" not in text


def test_the_example_is_in_the_site_with_what_it_shows(site: Path) -> None:
    text = (site / "example.html").read_text()
    assert text.count("data:image/") >= 2
    assert "verdicts differ" in text


def test_the_diagram_shows_its_source() -> None:
    source = (ROOT / "docs" / "images" / "path.mmd").read_text()
    labels = {line for label in re.findall(r'\["([^"]+)"\]', source) for line in label.split("<br/>")}
    drawing = (ROOT / "docs" / "images" / "path.svg").read_text()
    drawn = " ".join(re.sub(r"<[^>]+>", " ", drawing).split())
    assert len(labels) > 10
    for label in labels:
        assert label in drawn, f"{label}: draw docs/images/path.svg anew from path.mmd"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.stem)
def test_modules_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    names = re.findall(r"`(fcdd(?:\.\w+)+)`", text) + re.findall(r"(?:from|import) (fcdd(?:\.\w+)+)", text)
    for name in names:
        parts = name.split(".")
        for depth in range(len(parts), 0, -1):
            try:
                found = import_module(".".join(parts[:depth]))
            except ModuleNotFoundError:
                continue
            for part in parts[depth:]:
                found = getattr(found, part)
            break


def test_the_architecture_names_every_package() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    source = ROOT / "src" / "fcdd"
    named = {path.stem for path in source.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    for name in named - {"__init__"}:
        assert f"`{name}`" in text, name


def test_versions_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert project["version"] == citation["version"] == fcdd.__version__
    assert f"## {fcdd.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert citation["repository-code"] == project["urls"]["Repository"]


def kinds_of(path: Path) -> list[list[str]]:
    """For each cell of code, what kinds of output it has."""
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    return [[output.output_type for output in cell.outputs] for cell in cells]


def test_the_notebook_runs_and_is_kept_with_its_outputs(tmp_path: Path) -> None:
    assert NOTEBOOK.stat().st_size < 500_000
    target = tmp_path / "plates.ipynb"
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "execute.py", target], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert kinds_of(target) == kinds_of(NOTEBOOK), "run `make notebook` and commit what it shows"
    text = target.read_text()
    assert "site-packages" not in text + NOTEBOOK.read_text(), "a path of the machine that it ran on"
    assert "NG: score" in text
    assert "0 of 62 verdicts differ" in text
