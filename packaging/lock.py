"""Write requirements-serve.txt: what the server needs, each package with the hashes of its files.

python packaging/lock.py

pip resolves `.[serve]` under constraints.txt for the container's Python on both of its usual machines.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHON = "3.12"  # of the Dockerfile
MACHINES = ("x86_64", "aarch64")
HEAD = "# Made by packaging/lock.py; change pyproject.toml or constraints.txt and run it again.\n"


def resolved(machine: str) -> dict[str, str]:
    """All that `.[serve]` brings on this machine, name==version, with the SHA-256 of the wheel that fits."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-"]
    command += ["--python-version", PYTHON, "--only-binary", ":all:", "-c", str(ROOT / "constraints.txt")]
    for kind in ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014"):
        command += ["--platform", f"{kind}_{machine}"]
    with tempfile.TemporaryDirectory() as target:
        told = subprocess.run(
            [*command, "--target", target, f"{ROOT}[serve]"], check=True, stdout=subprocess.PIPE, text=True
        )
    found = {}
    for item in json.loads(told.stdout)["install"]:
        name, version = item["metadata"]["name"].lower().replace("_", "-"), item["metadata"]["version"]
        if name != "fcdd":
            found[f"{name}=={version}"] = item["download_info"]["archive_info"]["hashes"]["sha256"]
    return found


def main() -> None:
    hashes = defaultdict(set)
    for machine in MACHINES:
        for requirement, digest in resolved(machine).items():
            hashes[requirement].add(digest)
    lines = [HEAD]
    for requirement, digests in sorted(hashes.items()):
        lines.append(requirement + "".join(f" \\\n    --hash=sha256:{one}" for one in sorted(digests)) + "\n")
    (ROOT / "packaging" / "requirements-serve.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
