"""Model files: what was written comes back; damaged, tampered, foreign and newer files are refused with the reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from fcdd import modelfile
from fcdd.errors import ModelError


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "deep" / "m.safetensors"
    modelfile.write(path, "thing", {"a": torch.arange(6.0).view(2, 3), "n": torch.tensor(3)}, {"x": [1, 2]})
    return path


def metadata(path: Path, **changes: object) -> dict[str, str]:
    """The file's own metadata with parts of its header changed."""
    with safe_open(path, "pt") as file:
        return {"fcdd": json.dumps({**json.loads(file.metadata()["fcdd"]), **changes})}


def test_round_trip(written: Path) -> None:
    tensors, info = modelfile.read(written, "thing")
    assert torch.equal(tensors["a"], torch.arange(6.0).view(2, 3))
    assert tensors["n"].item() == 3
    assert info == {"x": [1, 2]}
    assert [p.name for p in written.parent.iterdir()] == ["m.safetensors"]


def test_tensors_and_info_are_guarded(written: Path) -> None:
    meta = metadata(written)
    tensors = {"a": torch.zeros(2, 3), "n": torch.tensor(3)}
    save_file(tensors, written, meta)
    with pytest.raises(ModelError, match="does not match its checksum"):
        modelfile.read(written, "thing")
    save_file({"a": torch.arange(6.0).view(2, 3), "n": torch.tensor(3)}, written, metadata(written, info='{"x": [9]}'))
    with pytest.raises(ModelError, match="does not match its checksum"):
        modelfile.read(written, "thing")


def test_truncated_newer_and_foreign_files(written: Path, tmp_path: Path) -> None:
    whole = written.read_bytes()
    for length in (0, 5, 100, len(whole) - 1):
        written.write_bytes(whole[:length])
        with pytest.raises(ModelError, match="truncated"):
            modelfile.read(written, "thing")
    written.write_bytes(whole)
    save_file({"a": torch.zeros(1)}, tmp_path / "newer", metadata(written, schema=99))
    with pytest.raises(ModelError, match="newer fcdd"):
        modelfile.read(tmp_path / "newer", "thing")
    save_file({"a": torch.zeros(1)}, tmp_path / "foreign")
    with pytest.raises(ModelError, match="not one of fcdd's"):
        modelfile.read(tmp_path / "foreign", "thing")
    with pytest.raises(ModelError, match="holds a thing, not a detector"):
        modelfile.read(written, "detector")
    with pytest.raises(ModelError, match="no such file"):
        modelfile.read(tmp_path / "absent", "thing")
