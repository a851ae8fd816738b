"""One self-contained ONNX file with what describes it in its metadata, read and checked without the onnx package.

An ONNX file is a protobuf message: a row of fields, each a tag, a length and its content. Our description is one
metadata entry (`modelfile.ENTRY`) at the end, with a SHA-256 over itself and over all other bytes of the file.
That tells damage and change, not who wrote the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fcdd.errors import ModelError
from fcdd.files import write_atomically
from fcdd.modelfile import ENTRY, SCHEMA, header_of

KIND = "runtime"
METADATA_PROPS = 14  # field of onnx.ModelProto; each entry has a key (field 1) and a value (field 2)


def write(path: Path, graph: bytes, info: Mapping[str, Any]) -> None:
    """Write a serialised model without metadata of ours and the JSON-able `info`; `read` gives both back."""
    text = json.dumps(info, sort_keys=True)
    header = {"format": f"fcdd-{KIND}", "schema": SCHEMA, "info": text, "sha256": _digest(graph, text)}
    entry = _field(1, ENTRY.encode()) + _field(2, json.dumps(header).encode())
    write_atomically(path, graph + _field(METADATA_PROPS, entry))


def read(path: Path) -> tuple[bytes, dict[str, Any]]:
    """The serialised model without our entry, and the info; ModelError where the file is not as it was written."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror})") from None
    try:
        parts = list(_split(content))
    except (IndexError, ValueError, UnicodeDecodeError):
        raise ModelError(f"{path}: not a readable ONNX file, perhaps truncated") from None
    graph = b"".join(part for part, entry in parts if entry is None)
    ours = [entry for _, entry in parts if entry is not None]
    header = header_of(path, KIND, ours[0] if len(ours) == 1 else None)
    if header.get("sha256") != _digest(graph, header["info"]):
        raise ModelError(f"{path}: its content does not match its checksum; it was changed or damaged after export")
    info: dict[str, Any] = json.loads(header["info"])
    return graph, info


def _split(content: bytes) -> Iterator[tuple[bytes, str | None]]:
    """Every field of the message as it stands, with the value of our metadata entry where it is that."""
    for number, start, body, end in _fields(content):
        entry = None
        if number == METADATA_PROPS:
            pair = {n: content[body + b : body + e].decode() for n, _, b, e in _fields(content[body:end])}
            entry = pair[2] if pair.get(1) == ENTRY else None
        yield content[start:end], entry


def _fields(content: bytes) -> Iterator[tuple[int, int, int, int]]:
    """(number, start of the tag, start of the content, end) of each field; ValueError where one is cut off."""
    at = 0
    while at < len(content):
        start = at
        tag, at = _varint(content, at)
        kind, body = tag & 7, at
        if kind == 0:
            _, at = _varint(content, at)
        elif kind == 2:
            length, body = _varint(content, at)
            at = body + length
        else:
            at += {1: 8, 5: 4}.get(kind, len(content) + 1)
        if at > len(content):
            raise ValueError("a field reaches beyond the end")
        yield tag >> 3, start, body, at


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _field(number: int, content: bytes) -> bytes:
    return _encoded(number << 3 | 2) + _encoded(len(content)) + content


def _encoded(value: int) -> bytes:
    groups = []
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])


def _digest(graph: bytes, text: str) -> str:
    return hashlib.sha256(text.encode() + b"\0" + graph).hexdigest()
