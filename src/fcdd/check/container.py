"""What a file's own bytes say about it: its format, whatever its name, and how strongly it was compressed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

import numpy as np

from fcdd.files import open_regular

_CONTENTS = {
    b"\x89PNG": ("PNG", (".png",)),
    b"\xff\xd8": ("JPEG", (".jpg", ".jpeg")),
    b"BM": ("BMP", (".bmp",)),
    b"II*\0": ("TIFF", (".tif", ".tiff")),
    b"MM\0*": ("TIFF", (".tif", ".tiff")),
    b"RIFF": ("WebP", (".webp",)),
    b"GIF8": ("GIF", (".gif",)),
    b"P": ("PNM", (".pgm", ".ppm", ".pnm")),
}
_STANDARD_TABLE = 3685  # sum of the JPEG standard's luminance quantisation table (Annex K)


def identify(path: Path) -> tuple[str, int]:
    """The format by content if the suffix contradicts it, else ""; and the JPEG quality, 100 for all else."""
    with open_regular(path) as stream:
        head = stream.read(4)
        kind, suffixes = next((known for magic, known in _CONTENTS.items() if head.startswith(magic)), ("", ()))
        wrong = kind if path.suffix.lower() not in suffixes else ""
        return wrong, _jpeg_quality(stream) if kind == "JPEG" else 100


def _jpeg_quality(stream: BinaryIO) -> int:
    """libjpeg's 1..100, from the sum of the first quantisation table: scale s = sum / 3685; 50 / s or 100 − 50 s.

    Entries end at 255, so that qualities below 20 are taken for somewhat better ones.
    """
    stream.seek(2)
    while len(head := stream.read(4)) == 4 and head[0] == 0xFF and head[1] != 0xDA:
        length = int.from_bytes(head[2:]) - 2
        if head[1] == 0xDB and length > 64:
            table = stream.read(length)
            wide = table[0] >> 4 and len(table) > 128
            scale = float(np.frombuffer(table, ">u2" if wide else "u1", 64, 1).sum()) / _STANDARD_TABLE
            return round(50 / scale if scale > 1 else 100 - 50 * scale)
        stream.seek(length, os.SEEK_CUR)
    return 100
