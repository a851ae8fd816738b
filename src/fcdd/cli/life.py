"""The commands in the order of a user's life, each with an example: what `--help` shows, and where each step leads."""

from __future__ import annotations

from typing import NamedTuple

import typer


class Step(NamedTuple):
    """A command, the heading that it stands under in the help, and an example of its use."""

    name: str
    panel: str
    example: str


TRY, TEACH, JUDGE, LINE, PAPER = (
    "First: look",
    "Then: teach, measure and believe it",
    "Then: judge parts",
    "At last: on the line",
    "The paper's experiments",
)
LIFE = (
    Step("demo", TRY, "fcdd demo"),
    Step("check", TRY, "fcdd check good/"),
    Step("train", TEACH, "fcdd train good/ -o part.safetensors"),
    Step("evaluate", TEACH, "fcdd evaluate part.safetensors test/"),
    Step("audit", TEACH, "fcdd audit part.safetensors test/"),
    Step("calibrate", TEACH, "fcdd calibrate part.safetensors new-good/ --max-false-rejects 0.02"),
    Step("compare", TEACH, "fcdd compare old.safetensors new.safetensors test/"),
    Step("predict", JUDGE, "fcdd predict part.safetensors images/ -o out --pdf"),
    Step("drift", JUDGE, "fcdd drift part.safetensors images/"),
    Step("export", LINE, "fcdd export part.safetensors --images good/"),
    Step("serve", LINE, "fcdd serve part.onnx"),
    Step("watch", LINE, "fcdd watch part.onnx camera/ -o sorted"),
    Step("run", PAPER, "fcdd run mvtec --normal bottle --data DATA --weights none"),
    Step("reproduce", PAPER, "fcdd reproduce table1 --data DATA --epochs 4"),
)


def arrange(app: typer.Typer) -> None:
    """Put the commands of `app` in the order of `LIFE`, under its headings, with its examples."""
    steps = {step.name: step for step in LIFE}
    place = {step.name: number for number, step in enumerate(LIFE)}
    app.registered_commands.sort(key=lambda command: place.get(_name(command), len(LIFE)))
    for command in app.registered_commands:
        step = steps.get(_name(command))
        if step is not None:
            command.rich_help_panel, command.epilog = step.panel, f"Example: {step.example}"
    shown = ("check", "train", "predict", "export", "watch")
    walk = "\n\n".join(["Examples, in the order of use:", *(steps[name].example for name in shown)])
    app.info.epilog = f"{walk}\n\n{app.info.epilog}"


def _name(command: typer.models.CommandInfo) -> str:
    assert command.callback is not None
    return command.name or command.callback.__name__
