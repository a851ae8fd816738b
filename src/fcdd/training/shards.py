"""Parts of long work on disk, so that a killed learning goes on where it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from fcdd import modelfile
from fcdd.errors import ModelError

LABEL = "identity.safetensors"


class Shards:
    """Named sets of tensors in the folder `work`; without a folder nothing is kept.

    They belong to the learning that `identity` describes. Those of another one are removed at the start.
    """

    def __init__(self, work: Path | None, identity: dict[str, Any]) -> None:
        self.work = work
        if work is None:
            return
        try:
            known = modelfile.read(work / LABEL, "identity")[1] == identity
        except ModelError:
            known = False
        if not known:
            for path in work.glob("shard-*.safetensors"):
                path.unlink()
            modelfile.write(work / LABEL, "identity", {}, identity)

    def get(self, name: str) -> dict[str, Tensor] | None:
        """The tensors that were put under `name`, or None."""
        path = self._path(name)
        return modelfile.read(path, "shard")[0] if path is not None and path.exists() else None

    def put(self, name: str, tensors: dict[str, Tensor]) -> None:
        path = self._path(name)
        if path is not None:
            modelfile.write(path, "shard", tensors, {})

    def _path(self, name: str) -> Path | None:
        return None if self.work is None else self.work / f"shard-{name}.safetensors"
