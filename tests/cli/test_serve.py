"""`fcdd serve` where it refuses to start; how it runs and stops is tested with the server."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from fcdd.cli import app

from ..conftest import Deployed


def refused(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["serve", *map(str, arguments)], env={"FCDD_TOKEN": None})
    assert result.exit_code == 2, result.output
    return result.stderr


def test_it_refuses_to_start_where_it_should(deployed: Deployed, tmp_path: Path) -> None:
    assert "--token" in refused(deployed.onnx, "--host", "0.0.0.0", "--port", 0)
    assert "16 printable" in refused(deployed.onnx, "--token", "guess")
    assert "another model is also named plate" in refused(deployed.onnx, deployed.onnx, "--port", 0)
    odd = tmp_path / "bad name.onnx"
    shutil.copy(deployed.onnx, odd)
    assert "letters, digits" in refused(odd, "--port", 0)
    assert "cannot be read" in refused(tmp_path / "missing.onnx", "--port", 0)
    assert "limit queue" in refused(deployed.onnx, "--queue", 0)
    assert "--log-level" in refused(deployed.onnx, "--log-level", "loud")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "in use" in refused(deployed.onnx, "--port", taken.getsockname()[1])


def test_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['uvicorn'] = None; from fcdd.cli import app; app(['serve', 'any.onnx'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "error: uvicorn is not installed: pip install 'fcdd[serve]'\n"
