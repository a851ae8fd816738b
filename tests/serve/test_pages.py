"""The page's files as they are served."""

from __future__ import annotations

from importlib import resources

import pytest
import requests

from fcdd.serve.pages import FILES


def test_all_files_of_the_page_are_served_and_no_other() -> None:
    held = {file.name for file in resources.files("fcdd.serve").joinpath("page").iterdir()}
    assert set(FILES.values()) == held


@pytest.mark.parametrize(("path", "name"), sorted(FILES.items()))
def test_served_as_they_are(served: str, path: str, name: str) -> None:
    answer = requests.get(served + path, timeout=20)
    assert answer.content == resources.files("fcdd.serve").joinpath("page", name).read_bytes()
    kind = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    assert answer.headers["content-type"].startswith(kind[name.rpartition(".")[2]])


@pytest.mark.parametrize("path", ["/page/", "/page/..%2fapp.py", "/page/%2e%2e/app.py", "/page/app.py", "//etc/passwd"])
def test_no_path_reaches_another_file(served: str, path: str) -> None:
    assert requests.get(served + path, timeout=20).status_code == 404
