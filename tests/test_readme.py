"""The README does what it says: all commands and the Python that it shows run here, in one folder.

What it only names (`parts/`, `DATA`, a file of weights) is put there first, as small as each command allows.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import typer.main

from fcdd.cli import app

from .paper import layouts

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
FCDD = (sys.executable, "-m", "fcdd.cli")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "2", "no_proxy": "127.0.0.1"}
PATIENCE = 60.0  # seconds, for a server to start and to stop
# What brings an experiment of the paper to small data; VGG11's ImageNet weights cannot be had here.
SMALLER = {"mvtec": ("--weights", "none", "--epochs", "1", *layouts.SMALL), "table1": ("--classes", "trouser")}


def commands() -> list[list[str]]:
    """Every command that the README shows in a block: the fenced ones, which make the model, before the indented."""
    fences = re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL)
    lines = [line for language, block in fences if language != "python" for line in block.splitlines()]
    unfenced = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
    lines += re.findall(r"^    (\S.*)$", unfenced, re.MULTILINE)
    shown = [shlex.split(line, comments=True) for line in lines if line.startswith(("fcdd ", "make "))]
    assert len(shown) == len(lines), "a block shows something that is not tested here"
    return shown


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `fcdd demo` has run, which is what `make demo` calls; the demo's own promises are checked on the way."""
    place = tmp_path_factory.mktemp("newcomer")
    told = json.loads(run([*FCDD, "demo", "--json"], place))
    assert told["image_auroc"] >= 0.95
    assert told["pixel_auroc"] >= 0.95
    assert (place / told["report"]).exists()
    assert (place / told["picture"]).exists()
    return place


def provide(words: list[str], folder: Path) -> list[str]:
    """The command with what it names in place: a few plates for folders, the demo's model, small data for DATA."""
    plates = folder / "fcdd-demo" / "plates"
    for word in words:
        place = folder / word
        if word.endswith("/") and not place.exists():
            for kind, source in (("good", plates / "train" / "good"), ("defects", plates / "test" / "stain")):
                (place / kind).mkdir(parents=True)
                for path in sorted(source.iterdir())[:6]:
                    shutil.copy(path, place / kind)
        elif word.endswith(".safetensors") and "train" not in words and not place.exists():
            shutil.copy(folder / "plate.safetensors", place)
    if "DATA" in words and not (folder / "DATA").exists():
        for write in (layouts.fashion_mnist, layouts.cifar, layouts.mvtec):
            write(folder / "DATA")
    if "--weights" in words:
        at = words.index("--weights")
        words = words[:at] + words[at + 2 :]
    return [*words, *SMALLER.get(words[2], ())]


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/healthz", timeout=PATIENCE) as answer:
            return bool(answer.status == 200)
    except urllib.error.URLError:
        return False


def serve(words: list[str], folder: Path) -> None:
    """Start the server, ask it whether it is there, and let it stop."""
    process = subprocess.Popen(
        [*FCDD, *words[1:], "--port", "0"], cwd=folder, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr
        address = json.loads(process.stderr.readline())["address"]
        deadline = time.monotonic() + PATIENCE
        while not answers(address) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert answers(address)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.communicate()


def test_the_commands_and_the_python(folder: Path) -> None:
    for words in commands():
        if words[0] == "make":  # installing is tried by whoever runs this; that the target is there, here
            run(["make", "--dry-run", "--always-make", *words[1:]], ROOT)
        elif words[1] == "serve":
            serve(provide(words, folder), folder)
        else:
            wanted = provide(words, folder)
            if "-o" in words and (folder / words[words.index("-o") + 1]).exists():
                wanted.append("--overwrite")  # two sections of the README write to `out`
            run([*FCDD, *wanted[1:]], folder)
    for made in ("plate.safetensors", "plate.html", "out", "plate-evaluation.html", "stains/scores.csv"):
        assert (folder / made).exists(), made
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert blocks
    for block in blocks:
        assert "NG" in run([sys.executable, "-c", block], folder)


def options() -> dict[str, set[str]]:
    """The options of every command."""
    group = typer.main.get_command(app)
    return {
        name: {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        for name, command in group.commands.items()  # type: ignore[attr-defined]
    }


def test_commands_and_options_in_the_text_exist() -> None:
    known = options()
    for code in re.findall(r"`([^`\n]+)`", README):
        words = shlex.split(code)
        named = {word.partition("=")[0] for word in words if word.startswith("--")}
        if words[0] == "fcdd" and words[1:]:
            assert words[1] in known, code
            assert named <= known[words[1]], code
        elif words[0].startswith("--"):
            assert any(named <= every for every in known.values()), code


def test_pages_and_extras_that_it_names_exist() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text()
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
    for extra in re.findall(r"fcdd\[(\w+)\]", README):
        assert re.search(rf"^{extra} = \[", pyproject, re.MULTILINE), extra
