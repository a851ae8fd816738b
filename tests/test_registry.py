"""Registries find what modules registered, and say what there is."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import pytest

from fcdd.errors import FcddError
from fcdd.registry import Registry


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    place = tmp_path / "shapes_of_test"
    place.mkdir()
    (place / "__init__.py").write_text("from fcdd.registry import Registry\nSHAPES = Registry('shape', __name__)\n")
    (place / "square.py").write_text("from shapes_of_test import SHAPES\nSHAPES.register('square')(4)\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "shapes_of_test"
    for name in [name for name in sys.modules if name.startswith("shapes_of_test")]:
        del sys.modules[name]


def test_a_new_file_is_enough(package: str, tmp_path: Path) -> None:
    (tmp_path / package / "circle.py").write_text("from shapes_of_test import SHAPES\nSHAPES.register('circle')(1)\n")
    shapes = __import__(package).SHAPES
    assert dict(shapes) == {"circle": 1, "square": 4}
    assert len(shapes) == 2


def test_an_unknown_name_says_what_there_is(package: str) -> None:
    shapes = __import__(package).SHAPES
    with pytest.raises(FcddError, match=r"^no shape 'cube'; there are square$"):
        shapes["cube"]
    assert "cube" not in shapes
    assert shapes.get("cube") is None


def test_two_things_cannot_have_one_name() -> None:
    registry: Registry[object] = Registry("shape", "fcdd.nn")
    registry.register("a")(object())
    with pytest.raises(ValueError, match="two of shape 'a'"):
        registry.register("a")(object())


def test_threads_that_ask_at_once_all_see_every_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "slowly"
    package.mkdir()
    (package / "__init__.py").write_text("from fcdd.registry import Registry\nTHINGS = Registry('thing', 'slowly')\n")
    for name in "abc":
        text = f"import time\nfrom slowly import THINGS\ntime.sleep(0.05)\nTHINGS.register('{name}')('{name}')\n"
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    things = import_module("slowly").THINGS
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(things.__getitem__, "cccc")) == ["c"] * 4
