"""What the unit and the image of the server promise: limits, no rights, health as readiness, hashes."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_unit_limits_what_the_server_may_take_and_do() -> None:
    lines = (ROOT / "packaging" / "fcdd.service").read_text().splitlines()
    unit = dict(line.split("=", 1) for line in lines if re.match(r"\w+=", line))
    assert {"MemoryMax", "LimitNOFILE", "TasksMax", "WorkingDirectory", "TimeoutStopSec"} <= set(unit)
    assert {unit[name] for name in ("NoNewPrivileges", "MemoryDenyWriteExecute", "PrivateDevices")} == {"yes"}
    assert (unit["ProcSubset"], unit["ProtectSystem"], unit["CapabilityBoundingSet"]) == ("pid", "strict", "")


def test_the_image_installs_by_hash_and_asks_for_readiness() -> None:
    image = (ROOT / "Dockerfile").read_text()
    assert "--require-hashes" in image
    assert "/readyz" in image[image.index("HEALTHCHECK") :]
    assert re.search(r"^USER [1-9]\d*:", image, re.MULTILINE)
    pinned = (ROOT / "packaging" / "requirements-serve.txt").read_text()
    names = re.findall(r"^[\w.\[\]-]+==\S+", pinned, re.MULTILINE)
    assert len(names) > 10
    assert pinned.count("--hash=sha256:") >= len(names)
