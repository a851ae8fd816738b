"""The `fcdd` command: argument handling only. Heavy modules are imported by the command that needs them."""

from fcdd.cli import audit, deploy, inspector, reproduce, research, serve  # noqa: F401  each registers its commands
from fcdd.cli.common import app

__all__ = ["app"]
