"""What the site's builder cannot know by itself: the pages of results, the executed example, and root pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "examples" / "plates.ipynb"
# Pages whose text stands at the root, where people and tools look for it.
FROM_ROOT = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill "Results" with every page there is, so that a new one needs no entry here."""
    pages = sorted((ROOT / "docs" / "results").glob("*.md"))
    for section in config.nav or []:
        if isinstance(section, dict) and "Results" in section:
            section["Results"] = [f"results/{page.name}" for page in pages]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made of files elsewhere in the repository."""
    files.append(File.generated(config, "example.md", content=page_of(NOTEBOOK)))
    for name, source in FROM_ROOT.items():
        text = (ROOT / source).read_text()
        files.append(File.generated(config, name, content=re.sub(r"\]\(docs/", "](", text)))
    return files


def page_of(notebook: Path) -> str:
    """An executed notebook as Markdown: its text, its code and what the code showed."""
    parts = []
    for cell in nbformat.read(notebook, as_version=4).cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        else:
            parts.append(f"```python\n{cell.source}\n```")
            parts += [shown(output) for output in cell.outputs]
    return "\n\n".join(parts) + "\n"


def shown(output: Any) -> str:
    """One output of a cell: an image where there is one, else its text."""
    data = output.get("data", {})
    for kind in ("image/jpeg", "image/png"):
        if kind in data:
            encoded = data[kind].replace("\n", "")
            return f"![What the code above shows](data:{kind};base64,{encoded})"
    return f"```text\n{(output.get('text') or data.get('text/plain', '')).rstrip()}\n```"
