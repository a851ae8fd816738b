"""The page "Paper and code": all places and tests it names are there, all commands run, no figure is left out."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from fcdd.paper.experiments import EXPERIMENTS
from fcdd.paper.experiments.table1 import NAMES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "paper-and-code.md").read_text()
PLACES = sorted(set(re.findall(r"`([\w/]+\.py):(\w+)`", PAGE)))


@pytest.mark.parametrize(("file", "name"), PLACES)
def test_every_place_is_there(file: str, name: str) -> None:
    folder = "tests" if Path(file).name.startswith("test_") else "src/fcdd"
    tree = ast.parse((ROOT / folder / file).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def test_every_command_is_one() -> None:
    commands = re.findall(r"`fcdd reproduce ([^`]+)`", PAGE)
    assert {command.split()[0] for command in commands} == set(EXPERIMENTS)
    for methods in re.findall(r"--methods (\S+)`", PAGE):
        assert set(methods.split(",")) <= set(NAMES)


def test_all_equations_tables_and_figures_of_the_paper_are_named() -> None:
    for number in range(1, 21):
        spans = re.findall(r"Figures? (\d+)(?:(?: and |, )(\d+))?", PAGE)
        assert str(number) in {part for span in spans for part in span}, f"Figure {number}"
    assert {f"eq. {number}" for number in (1, 2, 3)} <= set(re.findall(r"eq\. \d", PAGE))
    for number in range(1, 9):
        assert re.search(rf"Tables? (?:\d, |\d and )*{number}\b", PAGE), f"Table {number}"
