"""One self-contained safetensors file for tensors and what describes them; nothing pickled, everything checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fcdd.errors import ModelError
from fcdd.files import write_atomically

if TYPE_CHECKING:  # a line PC has no torch, and needs the checks and the safe writing alone
    from torch import Tensor

SCHEMA = 3  # 2 names the kind of network, 3 keeps all of the calibration in one object; older files are read as well
ENTRY = "fcdd"  # of the file's metadata


def write(path: Path, kind: str, tensors: Mapping[str, Tensor], info: Mapping[str, Any]) -> None:
    """Write `tensors` and the JSON-able `info` to `path`, so that a kill leaves the old file or the new one."""
    from safetensors.torch import save

    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(info, sort_keys=True)
    header = {"format": f"fcdd-{kind}", "schema": SCHEMA, "info": text, "sha256": _digest(plain, text)}
    # One entry: safetensors writes several in random order, and equal models should be equal files.
    write_atomically(path, save(plain, {ENTRY: json.dumps(header)}))


def read(path: Path, kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the info of a file that `write` made for `kind`; anything else is a ModelError."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise ModelError(f"{path}: no such file" if not path.exists() else f"{path}: a folder, pipe or device, no file")
    try:
        with safe_open(path, framework="pt") as file:
            header = header_of(path, kind, (file.metadata() or {}).get(ENTRY))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{path}: not a readable model file, perhaps truncated ({error})") from None
    if header.get("sha256") != _digest(tensors, header["info"]):
        raise ModelError(f"{path}: its content does not match its checksum; it was changed or damaged after saving")
    return tensors, info_of(path, header)


def kind_of(path: Path) -> str:
    """What a file of ours holds, such as detector, from its header alone; ModelError where it is not one of ours."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            return str(json.loads((file.metadata() or {})[ENTRY])["format"]).removeprefix("fcdd-")
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path}: not a readable model file of fcdd ({error})") from None


def header_of(path: Path, kind: str, entry: str | None) -> dict[str, Any]:
    """What the file says of itself, after checking that we can read it."""
    if entry is None:
        raise ModelError(f"{path}: a model file, but not one of fcdd's")
    try:
        header: dict[str, Any] = json.loads(entry)
        schema, found, text = header["schema"], header["format"].removeprefix("fcdd-"), header["info"]
        text.encode()  # the checksum is over these bytes
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ModelError(f"{path}: its description is damaged") from None
    if not isinstance(schema, int) or schema < 1:
        raise ModelError(f"{path}: its description is damaged, its schema is {schema!r:.20}")
    if schema > SCHEMA:
        raise ModelError(f"{path}: written by a newer fcdd (schema {schema}); upgrade fcdd to read it")
    if found != kind:
        raise ModelError(f"{path}: holds a {found}, not a {kind}")
    return header


def info_of(path: Path, header: Mapping[str, Any]) -> dict[str, Any]:
    """The info that a file's header carries; what is in it is for the reader to check."""
    try:
        info = json.loads(header["info"])
    except (ValueError, RecursionError):
        info = None
    if not isinstance(info, dict):
        raise ModelError(f"{path}: its description is damaged, it holds no JSON object")
    return info


def _digest(tensors: Mapping[str, Tensor], text: str) -> str:
    """SHA-256 over the info and every tensor's name, type, shape and bytes."""
    import torch

    sha = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        sha.update(f"{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
        sha.update(tensor.contiguous().flatten().view(torch.uint8).numpy().data)
    return sha.hexdigest()
