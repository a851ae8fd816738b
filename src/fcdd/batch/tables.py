"""Rows of a partition as the bytes of a JSON Lines or a Parquet file."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from fcdd.files import utf8

Format = Literal["parquet", "jsonl"]
FORMATS: tuple[Format, ...] = ("parquet", "jsonl")
Table = Literal["results", "errors"]


def encoded(rows: Sequence[Mapping[str, Any]], format: Format, table: Table) -> bytes:
    """`item` is the image's place in the listing, counted from 0; `file` its path as it stands there."""
    if format == "jsonl":
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    import pyarrow as pa  # comes with Ray Data
    from pyarrow import parquet

    # Parquet's strings are UTF-8, and a file's name need not be.
    safe = [{**row, "file": utf8(row["file"]).decode()} for row in rows]
    out = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(safe, _schema(table)), out, compression="zstd")
    return out.getvalue()


def _schema(table: Table) -> Any:
    import pyarrow as pa

    named = [("item", pa.int64()), ("file", pa.string())]
    if table == "errors":
        return pa.schema([*named, ("reason", pa.string())])
    whole = [(name, pa.int32()) for name in ("x", "y", "width", "height", "area")]
    region = pa.struct([*whole, ("peak", pa.float64()), ("share", pa.float64())])
    scores = [("score", pa.float64()), ("p_value", pa.float64()), ("verdict", pa.string())]
    return pa.schema([*named, *scores, ("regions", pa.list_(region))])
