"""MVTec-AD: one class of parts, its good training images, and good and defective test images with masks."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from fcdd import images
from fcdd.data import DATASETS, SMALL_SMOKE, Dataset, Problem, Split
from fcdd.data.sources import Images
from fcdd.errors import DataError
from fcdd.folders import Item, Masks, layout, refuse_other_sizes
from fcdd.seeds import generator_of

CLASSES = (
    "bottle",
    "cable",
    "capsule",
    "carpet",
    "grid",
    "hazelnut",
    "leather",
    "metal_nut",
    "pill",
    "screw",
    "tile",
    "toothbrush",
    "transistor",
    "wood",
    "zipper",
)
_REMEDY = "Get mvtec_anomaly_detection.tar.xz from https://www.mvtec.com/company/research/datasets/mvtec-ad."


def split(
    root: Path,
    normal: str,
    size: int = 240,
    *,
    semi_supervised: bool = False,
    authors_protocol: bool = False,
    generator: torch.Generator | None = None,
) -> Split:
    """The class `normal`, in memory as uint8 (N, 3, `size`, `size`), stretched and antialiased.

    `root` holds the classes' folders, or a folder mvtec or mvtec_anomaly_detection that does. `Split.mask` gives masks
    at the image's original size. With `semi_supervised`, one test anomaly of each defect type, drawn by `generator`,
    joins training with its mask (nearest neighbour, `size` × `size`) and leaves the test set; `authors_protocol` keeps
    it there, as the authors' code does.
    """
    place = next((home / normal for home in _homes(root) if (home / normal / "train").is_dir()), root / normal)
    if not place.is_dir():
        raise DataError(f"{place}: no such class folder; MVTec-AD has {', '.join(CLASSES)}. {_REMEDY}")
    good = _images(place / "train" / "good")
    items = read_test(place)
    drawn = _draw(items, generator) if semi_supervised else []
    tested = items if authors_protocol else [item for item in items if item not in drawn]
    joined = f"; one anomaly of each of {len(drawn)} defect types in training" if drawn else ""
    kept = ", kept in the test set (authors' protocol)" if drawn and authors_protocol else ""
    return Split(
        name=f"mvtec/{normal}",
        nominal=Images(good, size).load(),
        test=Images([item.path for item in tested], size).load(),
        labels=torch.tensor([item.label for item in tested]),
        kinds=[item.kind for item in tested],
        provenance=f"MVTec-AD {normal}, {len(good)} training and {len(tested)} test images{joined}{kept}",
        mask=partial(_mask, tested),
        nominal_paths=good,
        test_paths=[item.path for item in tested],
        anomalies=Images([item.path for item in drawn], size).load() if drawn else None,
        anomaly_masks=_small_masks(drawn, size) if drawn else None,
    )


def _homes(root: Path) -> tuple[Path, ...]:
    return root, root / "mvtec", root / "mvtec_anomaly_detection"


def read_test(place: Path) -> list[Item]:
    """The test images of one class folder, good ones first; every defect has a mask of its image's size."""
    where = layout(place)
    items = [Item(path, 0, "good", None) for path in _images(place / "test" / "good")]
    masks = Masks(images.find(where.masks), where.masks) if where.masks else None
    for folder in where.defects:
        for path in _images(folder):
            found = masks.of(path, Path(folder.name)) if masks else []
            if len(found) != 1:
                raise DataError(f"{path}: {len(found)} masks of it in ground_truth/{folder.name}, not one. {_REMEDY}")
            items.append(Item(path, 1, folder.name, found[0]))
    refuse_other_sizes(items)
    return items


def _images(folder: Path) -> list[Path]:
    found = images.find(folder) if folder.is_dir() else []
    if not found:
        raise DataError(f"{folder}: no images there, where MVTec-AD has them. {_REMEDY}")
    return found


def _draw(items: list[Item], generator: torch.Generator | None) -> list[Item]:
    """One item of each defect type."""
    if generator is None:
        raise ValueError("semi_supervised draws at random: pass a generator")
    drawn = []
    for kind in sorted({item.kind for item in items} - {"good"}):
        of_kind = [item for item in items if item.kind == kind]
        drawn.append(of_kind[int(torch.randint(len(of_kind), (1,), generator=generator))])
    return drawn


def _mask(items: list[Item], index: int) -> NDArray[np.bool_]:
    """Bool (H, W) at the original size; all False for a good image."""
    item = items[index]
    return images.load_mask(item.mask) if item.mask else np.zeros(images.size(item.path), dtype=np.bool_)


def _small_masks(items: list[Item], size: int) -> torch.Tensor:
    """(K, 1, size, size) uint8, 0 or 1."""
    masks = [images.resize_mask(images.load_mask(item.mask), size) for item in items if item.mask]
    return torch.from_numpy(np.stack(masks)[:, None].astype(np.uint8))


def _present(root: Path) -> list[str]:
    return [one for one in CLASSES if any((home / one / "train").is_dir() for home in _homes(root))]


def _read(problem: Problem) -> Split:
    return split(
        problem.root,
        problem.normal,
        problem.size,
        semi_supervised=problem.labelled,
        authors_protocol=problem.authors_protocol,
        generator=generator_of(problem.seed, "split"),
    )


DATASETS.register("mvtec")(
    Dataset(
        title="MVTec-AD",
        classes=CLASSES,
        read=_read,
        files=("{normal}/**/*.*", "mvtec/{normal}/**/*.*", "mvtec_anomaly_detection/{normal}/**/*.*"),
        eta=0.97,
        class_eta=0.99,
        short=10,
        smoke=SMALL_SMOKE,
        found=_present,
        draws_labelled=True,
        authors={"augment": "mvtec"},
    )
)
