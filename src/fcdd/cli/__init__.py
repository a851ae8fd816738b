"""The `fcdd` command: one module a command, named like it. A command imports heavy modules when it runs."""

from fcdd.cli import (  # noqa: F401  each registers its command
    audit,
    calibrate,
    check,
    compare,
    demo,
    drift,
    evaluate,
    export,
    predict,
    reproduce,
    run,
    serve,
    train,
    watch,
)
from fcdd.cli.common import app
from fcdd.cli.life import arrange

arrange(app)
__all__ = ["app"]
