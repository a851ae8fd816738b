"""A text watermark planted on images at known pixels, as photographers' marks are on some of VOC's horses."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from fcdd import images
from fcdd.data import imagenet, voc
from fcdd.errors import DataError
from fcdd.files import write_atomically
from fcdd.seeds import generator_of

TEXT = "horse-photo-archive"
HEIGHT = 0.06  # of the letters, as a part of the image's side
MARGIN = 0.02  # to the left and lower border, plus a random part of as much again
OPACITY = 0.8
SHARE = 0.2  # of the training horses that get the mark: about as many as in VOC
RECORD = "planted.json"
REAL_BOX = (0.84, 0.97, 0.05, 0.45)  # rows and columns, as parts of the side, where all real marks of VOC's horses lie


def plant(pixels: NDArray[np.uint8], seed: int, name: str) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """RGB (H, W, 3) → the image with text at its lower left, white with a dark rim, and the mask (H, W) of its pixels.

    Outside the mask no pixel changes. The place varies a little with `seed` and `name`.
    """
    rows, columns = pixels.shape[:2]
    side = min(rows, columns)
    shift = torch.rand(2, generator=generator_of(seed, "mark", name)).tolist()
    left, below = (round(MARGIN * side * (1 + part)) for part in shift)
    font = ImageFont.load_default(max(HEIGHT * side, 6))
    weights = []
    for stroke in (1, 0):
        drawn = Image.new("L", (columns, rows))
        ImageDraw.Draw(drawn).text((left, rows - below), TEXT, 255, font, anchor="ld", stroke_width=stroke)
        weights.append(OPACITY * np.asarray(drawn, np.float32)[..., None] / 255)
    rim, letters = weights
    marked = (pixels * (1 - rim) * (1 - letters) + 255 * letters).round().astype(np.uint8)
    return marked, rim[..., 0] > 0


def plant_voc(root: Path, target: Path, size: int, seed: int = 0, anomalous: str = "horse") -> Path:
    """A VOC folder below `target` that is `root`'s, but with the mark on `SHARE` of the training horses.

    Marked images are stored at `size` × `size`, as the reader brings them, so that mark and mask keep their pixels;
    the others are links to the originals, as is the ImageNet folder beside them, whose images are the nominal ones.
    What is there already is not made again.
    """
    place, made = voc.folder(root), target / voc.folder(root).name
    target.mkdir(parents=True, exist_ok=True)
    if (imagenet.home(root) / "train").is_dir() and not (target / "imagenet").exists():
        os.symlink(imagenet.home(root).absolute(), target / "imagenet")
    if (made / RECORD).is_file():
        return target
    horses = voc.read_lists(root, anomalous).train_objects
    if len(horses) < round(1 / SHARE):
        raise DataError(f"{place}: {len(horses)} training images with a {anomalous}; at least five are needed")
    order = torch.randperm(len(horses), generator=generator_of(seed, "planted")).tolist()
    chosen = {horses[index] for index in order[: round(SHARE * len(horses))]}
    (made / "JPEGImages").mkdir(parents=True, exist_ok=True)
    for path in sorted((place / "JPEGImages").iterdir()):
        new = made / "JPEGImages" / path.name
        if path in chosen:
            marked, _ = plant(images.resize(images.load(path), size), seed, path.stem)
            Image.fromarray(marked).save(new, format="JPEG", quality=95, subsampling=0)
        elif not new.exists():
            os.symlink(path.absolute(), new)
    for path in (place / "ImageSets" / "Main").glob(f"{anomalous}_*.txt"):
        write_atomically(made / "ImageSets" / "Main" / path.name, path.read_bytes())
    if (place / voc.MARKED_LIST).is_file():
        write_atomically(made / voc.MARKED_LIST, (place / voc.MARKED_LIST).read_bytes())
    record = {"text": TEXT, "marked": sorted(path.stem for path in chosen), "of": len(horses), "seed": seed}
    write_atomically(made / RECORD, json.dumps(record, indent=1).encode())
    return target
