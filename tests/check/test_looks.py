"""What is kept of each image."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fcdd.check.folders import locate
from fcdd.check.looks import Look, Mark, examine, names
from fcdd.errors import ImageError

from .parts import part, save, spot


def test_every_file_is_seen_once_in_order(tmp_path: Path) -> None:
    pixels = part(np.random.default_rng(0))
    save(pixels, tmp_path / "good/1.png")
    save(pixels, tmp_path / "good/2.bmp")
    save(pixels.reshape(32, 128, 3), tmp_path / "good/3.png")  # the same bytes, another image
    save(pixels[:, :, 0], tmp_path / "good/10.png")
    save(pixels[:, :, [0, 0, 2]], tmp_path / "good/11.png")  # yellow and blue, no gray
    (tmp_path / "good/12.png").write_bytes(b"nothing")
    save(spot(), tmp_path / "masks/x.png")
    folders = locate(tmp_path, None, None, None)
    looks, marks, errors = examine(folders, folders.files(), quiet=True)
    assert names(looks) == ("good/1.png", "good/2.bmp", "good/3.png", "good/10.png", "good/11.png")
    assert [look.size for look in looks] == [(64, 64), (64, 64), (32, 128), (64, 64), (64, 64)]
    assert [look.gray for look in looks] == [False, False, False, True, False]
    assert looks[0].digest == looks[1].digest
    assert len({look.digest for look in looks}) == 4
    assert all(isinstance(look, Look) and look.thumb.shape == (64, 64) for look in looks)
    assert marks == [Mark(tmp_path / "masks/x.png", (64, 64), 64 / 64**2)]
    assert [error.source for error in errors] == [str(tmp_path / "good/12.png")]
    assert isinstance(errors[0], ImageError)
