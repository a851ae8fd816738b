"""A newcomer is led: the help follows the order of use, examples hold, and every command names the next step."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import typer.main

from fcdd.cli import app
from fcdd.cli.life import LIFE

from ..conftest import Deployed
from ..invoke import fcdd
from .conftest import Line

PATIENCE = 60.0  # seconds, for a server to start and to stop


def test_the_help_follows_the_order_of_use() -> None:
    code, out, _ = fcdd("--help")
    assert code == 0
    places = [out.index(f"│ {step.name} ") for step in LIFE]
    assert places == sorted(places)
    for step in LIFE:
        assert step.panel in out
    assert "fcdd train good/ -o part.safetensors" in out


def test_every_command_is_in_it_with_an_example_that_it_would_take() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert [step.name for step in LIFE] == list(commands)
    for step in LIFE:
        words = shlex.split(step.example)
        assert words[:2] == ["fcdd", step.name]
        known = {option for parameter in commands[step.name].params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known, step.example
        assert step.example in " ".join(fcdd(step.name, "--help")[1].split())


def test_every_command_has_json() -> None:
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        assert any("--json" in parameter.opts for parameter in command.params), name


def test_each_answer_ends_with_the_next_step(line: Line) -> None:
    odd = line.root / "my parts"
    line.images.rename(odd)
    for command, said in (
        (("check", odd), f"fcdd train '{odd}' -o part.safetensors"),
        (("predict", line.model, odd, "-o", line.root / "out"), "out/index.html in a browser"),
        (("drift", line.model, odd), "fcdd calibrate"),
        (("watch", line.model, odd, "-o", line.root / "w", "--once", "--settle", 0), f"'{odd}' -o"),
        (("compare", line.model, line.model, odd, "-o", line.root / "c"), "c/index.html in a browser"),
    ):
        _, out, err = fcdd(*command)
        last = out.splitlines()[-1]
        assert last.startswith("next      "), (command, out, err)
        assert said in last
    told = json.loads(fcdd("drift", line.model, odd, "--json")[1])  # scripts get no advice
    assert "drifted" in told


def test_serve_says_where_and_exports_by_itself(deployed: Deployed, tmp_path: Path) -> None:
    model = tmp_path / "plate.safetensors"
    deployed.detector.save(model)
    command = [sys.executable, "-m", "fcdd.cli", "serve", model, "--port", "0", "--threads", "1"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout
        said = server.stdout.readline()
        assert said.startswith("open http://127.0.0.1:")
        assert "(plate); stop with Ctrl-C" in said
        with urllib.request.urlopen(said.split()[1] + "/v1/models", timeout=PATIENCE) as answer:
            assert json.load(answer)["models"][0]["name"] == "plate"
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 0
    finally:
        server.kill()
        server.communicate()
    assert [path.name for path in tmp_path.iterdir()] == ["plate.safetensors"]


def test_a_model_that_cannot_be_exported_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.safetensors").write_bytes(b"no model")
    code, _, err = fcdd("serve", tmp_path / "broken.safetensors", "--port", 0)
    assert (code, "broken.safetensors: could not be exported. " in err) == (2, True)
