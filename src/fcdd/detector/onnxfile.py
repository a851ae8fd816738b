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
from fcdd.files import open_regular, write_atomically
from fcdd.modelfile import ENTRY, SCHEMA, header_of, info_of

KIND = "runtime"
METADATA_PROPS = 14  # field of onnx.ModelProto; each entry has a key (field 1) and a value (field 2)
LARGEST = 2**31 - 1  # bytes that protobuf can hold
MOST_FIELDS = 200_000  # of a model; ours have some thousands
# The messages of onnx.proto in which there may be tensors: by field number, what is inside each.
MESSAGES: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {},
}
EXTERNAL_DATA, DATA_LOCATION = (13, 2), (14, 0)  # fields of a tensor, with their wire types


def write(path: Path, graph: bytes, info: Mapping[str, Any]) -> None:
    """Write a serialised model without metadata of ours and the JSON-able `info`; `read` gives both back."""
    text = json.dumps(info, sort_keys=True)
    header = {"format": f"fcdd-{KIND}", "schema": SCHEMA, "info": text, "sha256": _digest(graph, text)}
    entry = _field(1, ENTRY.encode()) + _field(2, json.dumps(header).encode())
    write_atomically(path, graph + _field(METADATA_PROPS, entry))


def read(path: Path) -> tuple[bytes, dict[str, Any]]:
    """The serialised model without our entry, and the info; ModelError where the file is not as it was written, or
    would have the runtime read other files."""
    try:
        with open_regular(path) as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror})") from None
    try:
        if len(content) > LARGEST:
            raise ValueError("longer than an ONNX file can be")
        parts = list(_split(content))
    except (IndexError, ValueError):
        raise ModelError(f"{path}: not a readable ONNX file, perhaps truncated") from None
    graph = b"".join(part for part, entry in parts if entry is None)
    ours = [entry for _, entry in parts if entry is not None]
    header = header_of(path, KIND, ours[0] if len(ours) == 1 else None)
    if header.get("sha256") != _digest(graph, header["info"]):
        raise ModelError(f"{path}: its content does not match its checksum; it was changed or damaged after export")
    try:
        outside = reads_outside(graph)
    except (IndexError, ValueError):
        raise ModelError(f"{path}: not a readable ONNX file, its graph is damaged") from None
    if outside:
        raise ModelError(f"{path}: keeps weights in other files, which would be read unchecked. Export it with fcdd")
    return graph, info_of(path, header)


def reads_outside(graph: bytes) -> bool:
    """Whether a tensor of the model keeps its data in another file: a name in the model could be any file's."""
    waiting, seen = [("model", 0, len(graph))], 0
    while waiting:
        message, start, stop = waiting.pop()
        inside = MESSAGES[message]
        for number, kind, _, body, end in _fields(graph, start, stop):
            seen += 1
            if seen > MOST_FIELDS:
                raise ValueError("more parts than a model has")
            if message == "tensor" and (number, kind) == EXTERNAL_DATA:
                return True
            if message == "tensor" and (number, kind) == DATA_LOCATION and _varint(graph, body)[0]:
                return True
            if kind == 2 and number in inside:
                waiting.append((inside[number], body, end))
    return False


def _split(content: bytes) -> Iterator[tuple[bytes, str | None]]:
    """Every field of the message as it stands, with the value of our metadata entry where it is that."""
    for number, _, start, body, end in _fields(content, 0, len(content)):
        entry = None
        if number == METADATA_PROPS:
            pair = {n: content[b:e].decode() for n, _, _, b, e in _fields(content, body, end)}
            entry = pair.get(2, "") if pair.get(1) == ENTRY else None
        yield content[start:end], entry


def _fields(content: bytes, at: int, stop: int) -> Iterator[tuple[int, int, int, int, int]]:
    """(number, wire type, start of the tag, start of the content, end) of each field of the message content[at:stop].

    ValueError where one is cut off, or is of a kind that no ONNX file has; so nothing can hide from this reader.
    """
    for _ in range(MOST_FIELDS):
        if at == stop:
            return
        start = at
        tag, at = _varint(content, at)
        kind, body = tag & 7, at
        if kind == 0:
            _, at = _varint(content, at)
        elif kind == 2:
            length, body = _varint(content, at)
            at = body + length
        else:
            at += {1: 8, 5: 4}.get(kind, stop + 1)
        if at > stop or not 8 <= tag < 1 << 32:
            raise ValueError("a field reaches beyond the end, or is none")
        yield tag >> 3, kind, start, body, at
    raise ValueError("more parts than a model has")


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):  # protobuf's longest has ten bytes
        byte = content[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value, at
    raise ValueError("a number of more than ten bytes")


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
