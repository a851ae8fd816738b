"""The `fcdd` command in this process: quick, and a bug keeps its traceback."""

from __future__ import annotations

from typer.testing import CliRunner

from fcdd.cli import app


def fcdd(*arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr
