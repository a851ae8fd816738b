"""The inspection set of the demo: brushed-metal name plates and their defects, drawn in code from a seed.

A plate is rendered as a height map under a slanted lamp: brushed metal with a bevelled edge and four drilled holes,
lying on a dark belt, with a print of ink on it. A defect edits the scene (material cut away, relief, a film on the
surface, worn or missing ink), never the finished image, and its mask is where the two images of the same plate,
with and without the edit, visibly differ. No code is shared with `fcdd.anomalies`: chips, dents and missing marks have
no counterpart among the synthetic training anomalies, scratches and stains have one that is drawn by other means.

Lengths are in units of half the image's side, with the origin in its middle and y pointing down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from fcdd import images
from fcdd.data import Split

Array = NDArray[np.float64]
Random = np.random.Generator

VISIBLE = 6 / 255  # a change of six grey levels in some channel, three times the camera's noise
PLATE = (0.88, 0.80, 0.09)  # half width, half height and corner radius
HOLES = ((-0.76, -0.68), (0.76, -0.68), (-0.76, 0.68), (0.76, 0.68))
HOLE_RADIUS, BEVEL = 0.055, 0.045
LAMP = (-0.6, -0.8)  # from the upper left
METAL, INK, BELT = np.array([0.63, 0.645, 0.66]), np.array([0.09, 0.10, 0.15]), np.array([0.085, 0.095, 0.09])


@dataclass(frozen=True)
class Plates:
    """The demo's images, uint8 (N, 3, H, W), and for the test images label (M,), kind and mask (M, 1, H, W) uint8."""

    train: Tensor
    test: Tensor
    labels: Tensor
    kinds: tuple[str, ...]
    masks: Tensor

    def split(self) -> Split:
        """The same as a one-class problem."""
        provenance = f"generated plates: {len(self.train)} nominal for training, {len(self.test)} for test"
        return Split(
            name="plates",
            nominal=self.train,
            test=self.test,
            labels=self.labels,
            kinds=self.kinds,
            provenance=provenance,
            mask=lambda index: self.masks[index, 0].numpy().astype(bool),
        )


# ---------------------------------------------------------------------------------------------- the print


def _segment(x: Array, y: Array, a: tuple[float, float], b: tuple[float, float]) -> Array:
    """Distance to the straight line from a to b."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    t = np.clip(((x - a[0]) * dx + (y - a[1]) * dy) / (dx * dx + dy * dy), 0, 1)
    return np.hypot(x - a[0] - t * dx, y - a[1] - t * dy)


def _box(x: Array, y: Array, cx: float, cy: float, half_width: float, half_height: float) -> Array:
    """Signed distance to an upright rectangle."""
    return np.maximum(np.abs(x - cx) - half_width, np.abs(y - cy) - half_height)


# Strokes of the digits in a cell one wide and two high.
GLYPHS: dict[str, list[tuple[float, float]]] = {
    "0": [(0.2, 0), (0.8, 0), (1, 0.3), (1, 1.7), (0.8, 2), (0.2, 2), (0, 1.7), (0, 0.3), (0.2, 0)],
    "1": [(0.15, 0.4), (0.55, 0), (0.55, 2)],
    "6": [(0.9, 0.1), (0.4, 0.1), (0, 0.7), (0, 1.7), (0.2, 2), (0.8, 2), (1, 1.7), (1, 1.2), (0.8, 0.95), (0, 1)],
    "7": [(0, 0), (1, 0), (0.35, 2)],
}
NUMBER = "01760"
MATRIX = np.random.default_rng(2007).random((9, 9)) < 0.5  # the modules of the matrix code


@lru_cache(maxsize=4)
def _marks(size: int) -> Tensor:
    """Ink coverage of each mark, (11, 2·size, 2·size) float32 in [0, 1]: digits, ring, bars, code, three crosses."""
    step = (np.arange(2 * size) + 0.5) / size - 1
    x, y = np.broadcast_arrays(step[None, :], step[:, None])
    marks = []
    for k, digit in enumerate(NUMBER):
        points = [(0.135 * k + 0.085 * px, -0.46 + 0.1 * py) for px, py in GLYPHS[digit]]
        marks.append(np.min([_segment(x, y, a, b) for a, b in pairwise(points)], 0) - 0.016)
    ring = np.abs(np.hypot(x + 0.4, y + 0.3) - 0.235) - 0.028
    corners = [(-0.4 + 0.14 * np.sin(a), -0.3 - 0.14 * np.cos(a)) for a in 2 * np.pi / 3 * np.arange(4)]
    triangle = np.min([_segment(x, y, a, b) for a, b in pairwise(corners)], 0) - 0.022
    marks.append(np.minimum(ring, triangle))
    widths = (1, 2, 1, 1, 3, 1, 2, 1, 3, 2, 1, 1, 2, 3, 1, 2, 1)
    left = np.cumsum((0, *widths[:-1])) * 0.023 - 0.66
    bars = [_box(x, y, a + 0.0115 * w, 0.4, 0.0115 * w, 0.13) for a, w in zip(left, widths, strict=True)][::2]
    marks.append(np.min(bars, 0))
    code = [
        _box(x, y, 0.28 + 0.036 * c, 0.25 + 0.036 * r, 0.0185, 0.0185) for r, c in zip(*MATRIX.nonzero(), strict=True)
    ]
    code += [_box(x, y, 0.242, 0.4, 0.016, 0.19), _box(x, y, 0.42, 0.575, 0.195, 0.016)]
    marks.append(np.min(code, 0))
    for cx, cy in ((-0.79, 0.0), (0.79, 0.0), (0.0, 0.7)):
        marks.append(np.minimum(_box(x, y, cx, cy, 0.042, 0.008), _box(x, y, cx, cy, 0.008, 0.042)))
    return torch.from_numpy(np.clip(0.5 - np.stack(marks) * size, 0, 1).astype(np.float32))


# ---------------------------------------------------------------------------------------------- the scene


@dataclass(frozen=True)
class _Scene:
    """All that chance decides about one nominal plate. Fields are (H, W)."""

    x: Array  # coordinates on the plate, which lies a little shifted and turned
    y: Array
    print_x: Array  # coordinates of the print, which is a little off the plate's
    print_y: Array
    metal: Array  # brushed brightness
    ink: Array  # density of the print
    belt: Array
    noise: Array  # the camera's, (3, H, W)


@dataclass
class _Edit:
    """A defect as a change of the scene; the default changes nothing."""

    kept: Array  # (K,) how much of each mark was printed
    cut: Array  # signed distance to material that is gone, negative inside
    relief: Array  # height added to the surface
    wear: Array  # share of the ink that is left
    film: Array  # opacity of something that lies on the surface
    film_colour: Array  # (3,)


def _field(random: Random, size: int, along: float, across: float, angle: float = 0.0) -> Array:
    """Gaussian noise (size, size) of mean 0 and deviation 1, correlated over `along` × `across` pixels."""
    fx, fy = np.fft.rfftfreq(size), np.fft.fftfreq(size)[:, None]
    u, v = fx * np.cos(angle) + fy * np.sin(angle), fy * np.cos(angle) - fx * np.sin(angle)
    spectrum = np.fft.rfft2(random.standard_normal((size, size)))
    field = np.fft.irfft2(spectrum * np.exp(-2 * np.pi**2 * ((along * u) ** 2 + (across * v) ** 2)), (size, size))
    return np.asarray((field - field.mean()) / field.std())


def _turned(x: Array, y: Array, centre: Sequence[float] | Array, angle: float) -> tuple[Array, Array]:
    x, y = x - centre[0], y - centre[1]
    return x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)


def _scene(random: Random, size: int) -> _Scene:
    step = (np.arange(size) + 0.5) * 2 / size - 1
    angle = random.normal(0, 0.008)
    x, y = _turned(step[None, :], step[:, None], random.normal(0, 0.008, 2), angle)
    print_x, print_y = _turned(x, y, random.normal(0, 0.006, 2), random.normal(0, 0.005))
    s = size / 192
    brushed = 0.045 * _field(random, size, 40 * s, 0.6 * s, angle) + 0.03 * _field(random, size, 12 * s, 0.5, angle)
    brushed += 0.02 * _field(random, size, 90 * s, 2.5 * s, angle) + 0.012 * random.standard_normal((size, size))
    sheen = np.exp(-(((x - random.normal(0.1, 0.15)) / random.uniform(0.45, 0.6)) ** 2))
    light = random.normal(1, 0.025) + random.normal(-0.03, 0.012) * x + random.normal(-0.06, 0.015) * y
    metal = light * (0.90 + 0.22 * sheen) * (1 + brushed * (0.8 + 0.6 * sheen))
    ink = np.clip(random.uniform(0.86, 0.96) + 0.03 * _field(random, size, 3 * s, 1.5 * s), 0, 1)
    belt = light * (1 + 0.10 * _field(random, size, 1.2, 1.2) + 0.12 * _field(random, size, 20 * s, 20 * s))
    return _Scene(x, y, print_x, print_y, metal, ink, belt, random.normal(0, 0.007, (3, size, size)))


def _no_edit(size: int) -> _Edit:
    zero = np.zeros((size, size))
    return _Edit(np.ones(len(_marks(size))), zero + 9.0, zero, zero + 1, zero, np.ones(3))


def _solid(scene: _Scene, cut: Array) -> Array:
    """Signed distance to the plate, negative inside: a rounded rectangle less the holes and what is cut away."""
    width, height, corner = PLATE
    a, b = np.abs(scene.x) - width + corner, np.abs(scene.y) - height + corner
    distance = np.hypot(np.maximum(a, 0), np.maximum(b, 0)) + np.minimum(np.maximum(a, b), 0) - corner
    for hx, hy in HOLES:
        distance = np.maximum(distance, HOLE_RADIUS - np.hypot(scene.x - hx, scene.y - hy))
    return np.maximum(distance, -cut)


def _printed(scene: _Scene, edit: _Edit) -> Array:
    """Ink coverage (H, W): the marks that were printed, where the print came to lie."""
    sheet = torch.tensordot(torch.from_numpy(edit.kept.astype(np.float32)), _marks(len(scene.x)), 1)  # none overlap
    grid = torch.from_numpy(np.stack([scene.print_x, scene.print_y], -1).astype(np.float32))
    ink = F.grid_sample(sheet[None, None], grid[None], align_corners=False)[0, 0].numpy()
    return ink * scene.ink * edit.wear


def _render(scene: _Scene, edit: _Edit) -> Array:
    """The image (3, H, W) in [0, 1], before the camera's noise."""
    size = len(scene.x)
    distance = _solid(scene, edit.cut)
    height = BEVEL * (1 - np.clip(1 + distance / BEVEL, 0, 1) ** 2) * 0.5 + edit.relief
    slope_y, slope_x = np.gradient(height, 2 / size)
    shade = np.clip(1 - 0.9 * (slope_x * -LAMP[0] + slope_y * -LAMP[1]), 0.25, 1.9)
    ink = _printed(scene, edit)[None]
    surface = METAL[:, None, None] * scene.metal
    surface = surface * (1 - ink) + INK[:, None, None] * scene.metal * ink
    surface = surface * (1 - edit.film) + edit.film_colour[:, None, None] * scene.metal * edit.film
    shadow = 1 - 0.6 * np.exp(-np.maximum(np.roll(distance, (2, 1), (0, 1)), 0) / 0.03)
    belt = BELT[:, None, None] * scene.belt * shadow
    cover = np.clip(0.5 - distance * size / 2, 0, 1)
    return _lens(belt * (1 - cover) + surface * shade * cover)


def _lens(image: Array) -> Array:
    """A slight blur, 1–4–1 in each direction."""
    for axis in (1, 2):
        padded = np.pad(image, [(1, 1) if a == axis else (0, 0) for a in range(3)], mode="edge")
        n = image.shape[axis]
        before, after = np.take(padded, range(n), axis), np.take(padded, range(2, n + 2), axis)
        image = (before + 4 * image + after) / 6
    return np.clip(image, 0, 1)


# ---------------------------------------------------------------------------------------------- the defects


def _place(random: Random, margin: float) -> tuple[float, float]:
    """A point on the plate, `margin` away from its edge."""
    return random.uniform(-1, 1) * (PLATE[0] - margin), random.uniform(-1, 1) * (PLATE[1] - margin)


def _scratch(random: Random, scene: _Scene, severity: float, edit: _Edit) -> None:
    """A groove along a wandering path, with a burr on its sides; it takes the ink away."""
    steps = int(14 + 34 * severity + random.integers(0, 10))
    heading = (
        random.uniform(0, 2 * np.pi) + np.cumsum(random.normal(0, 0.06, steps)) + random.normal(0, 0.02) * steps / 20
    )
    path = np.cumsum(0.018 * np.stack([np.cos(heading), np.sin(heading)]), 1)
    path += np.array(_place(random, 0.25))[:, None] - path.mean(1, keepdims=True)
    gap = np.hypot(scene.x[..., None] - path[0], scene.y[..., None] - path[1])
    nearest, distance = gap.argmin(-1), gap.min(-1)
    pressure = np.sin(np.linspace(0.25, np.pi - 0.15, steps))[nearest] * (
        1 + 0.25 * random.standard_normal(steps)[nearest]
    )
    width = 0.007 + 0.005 * severity
    groove = np.exp(-((distance / width) ** 2)) * np.clip(pressure, 0, None)
    edit.relief = (0.003 + 0.007 * severity) * (0.5 * np.exp(-((distance / (2 * width)) ** 2)) * pressure - groove)
    edit.wear = 1 - np.clip(groove * (0.5 + severity), 0, 1)
    edit.film, edit.film_colour = np.clip(groove * (0.2 + 0.6 * severity), 0, 0.9), np.array([0.86, 0.88, 0.90])


def _stain(random: Random, scene: _Scene, severity: float, edit: _Edit) -> None:
    """A dried drop: drops that ran together, a thin film with a darker rim, of oil, rust or tempering colour."""
    cx, cy = _place(random, 0.2)
    radius = 0.06 + 0.12 * severity * random.uniform(0.6, 1)
    potential = np.zeros_like(scene.x)
    for _ in range(random.integers(3, 8)):
        dx, dy = random.normal(0, 0.7 * radius, 2)
        r = radius * random.uniform(0.5, 1)
        potential += np.exp(-((scene.x - cx - dx) ** 2 + (scene.y - cy - dy) ** 2) / r**2)
    size = len(scene.x)
    potential *= 1 + 0.12 * _field(random, size, size / 40, size / 40)
    body, rim = np.clip((potential - 0.5) / 0.12, 0, 1), np.exp(-(((potential - 0.56) / 0.09) ** 2))
    body *= 1 + 0.25 * _field(random, size, size / 24, size / 24)
    edit.film = np.clip((0.12 + 0.35 * severity) * body + (0.10 + 0.35 * severity) * rim, 0, 0.85)
    colours = np.array([[0.25, 0.20, 0.13], [0.42, 0.24, 0.11], [0.30, 0.36, 0.55]])
    edit.film_colour = colours[random.integers(len(colours))]


def _chip(random: Random, scene: _Scene, severity: float, edit: _Edit) -> None:
    """Material broken out along straight facets, at the edge or as a hole, with a bright fresh rim."""
    radius = 0.03 + 0.10 * severity * random.uniform(0.7, 1)
    cx, cy = _place(random, 0.2)
    if random.random() < 0.7:  # out of one of the four edges
        side, along = random.choice([-1.0, 1.0]), random.uniform(-0.75, 0.75)
        cx, cy = (side * PLATE[0], along * PLATE[1]) if random.random() < 0.5 else (along * PLATE[0], side * PLATE[1])
    sides = random.integers(5, 9)
    normals = (np.arange(sides) + random.uniform(-0.3, 0.3, sides)) * 2 * np.pi / sides
    reach = radius * random.uniform(0.55, 1.1, sides)
    facets = [(scene.x - cx) * np.cos(a) + (scene.y - cy) * np.sin(a) - r for a, r in zip(normals, reach, strict=True)]
    size = len(scene.x)
    edit.cut = np.max(facets, 0) + 0.15 * radius * _field(random, size, size / 70, size / 70)
    rim = np.exp(-((edit.cut / (0.012 + 0.012 * severity)) ** 2))
    edit.film, edit.film_colour = (0.5 + 0.45 * severity) * rim, np.array([0.97, 0.97, 0.96])
    edit.wear = 1 - rim


def _dent(random: Random, scene: _Scene, severity: float, edit: _Edit) -> None:
    """A shallow bowl with a raised lip; nothing but the shading shows it."""
    u, v = _turned(scene.x, scene.y, _place(random, 0.25), random.uniform(0, np.pi))
    radius = (0.05 + 0.05 * severity) * random.uniform(0.85, 1.15)
    square = (u / radius) ** 2 + (v / (radius * random.uniform(0.6, 1))) ** 2
    edit.relief = -(0.15 + 0.45 * severity) * radius * (1 - 0.35 * square) * np.exp(-square)


def _missing(random: Random, scene: _Scene, severity: float, edit: _Edit) -> None:
    """A mark that was not printed, or only faintly: from a cross over the digits to the ring as severity grows."""
    by_area = (8, 9, 10, 1, 2, 0, 3, 4, 7, 6, 5)
    edit.kept[by_area[int(severity * len(by_area))]] = 0 if random.random() < 0.6 else random.uniform(0.1, 0.5)


DEFECTS: dict[str, Callable[[Random, _Scene, float, _Edit], None]] = {
    "scratch": _scratch,
    "stain": _stain,
    "chip": _chip,
    "dent": _dent,
    "missing": _missing,
}


# ---------------------------------------------------------------------------------------------- the set


def _photograph(seed: tuple[int, ...], size: int, kind: str = "good", severity: float = 0.0) -> tuple[Tensor, Tensor]:
    """One plate as the camera sees it, uint8 (3, H, W), and the mask of its defect, uint8 (1, H, W)."""
    random = np.random.default_rng(seed)
    scene = _scene(random, size)
    clean = image = _render(scene, _no_edit(size))
    changed = np.zeros((size, size), bool)
    while kind != "good" and changed.sum() < (size / 48) ** 2:  # a defect may fall where it does not show: another
        edit = _no_edit(size)
        DEFECTS[kind](random, scene, severity, edit)
        image = _render(scene, edit)
        changed = np.abs(image - clean).max(0) >= VISIBLE
    image = np.clip(np.rint((image + scene.noise) * 255), 0, 255).astype(np.uint8)
    return torch.from_numpy(image), torch.from_numpy(changed[None].astype(np.uint8))


def generate(
    n_train: int = 60,
    n_good: int = 30,
    n_defects_each: int = 10,
    size: int = 192,
    seed: int = 0,
    faintest: float = 0.0,
) -> Plates:
    """Nominal training plates, and a test set of good ones followed by every kind of defect, from faint to severe.

    `faintest` in [0, 1) is the severity that each kind starts from. Equal arguments give equal plates. Marks and
    scratches need a `size` of 96 or more to be seen.
    """
    if size < 96:
        raise ValueError(f"plates of {size} px are too small to show their defects; use 96 or more")
    if n_train < 1 or n_good + n_defects_each < 1:
        raise ValueError("at least one training and one test plate are needed")
    train = [_photograph((seed, 0, i), size) for i in range(n_train)]
    test = [_photograph((seed, 1, i), size) for i in range(n_good)]
    kinds = ["good"] * n_good
    for k, kind in enumerate(DEFECTS):
        for i in range(n_defects_each):
            severity = faintest + (1 - faintest) * (i + 0.5) / n_defects_each
            test.append(_photograph((seed, 2 + k, i), size, kind, severity))
            kinds.append(kind)
    labels = torch.tensor([int(kind != "good") for kind in kinds])
    tested, masks = (torch.stack(part) for part in zip(*test, strict=True))
    return Plates(torch.stack([image for image, _ in train]), tested, labels, tuple(kinds), masks)


def write(root: Path, seed: int) -> Path:
    """The set as PNG files of 256 px in MVTec's layout below `root`, so that every command can be tried on it."""
    plates = generate(n_train=120, size=256, seed=seed, faintest=0.5)
    for index, plate in enumerate(plates.train):
        _write(plate, root / "train" / "good" / f"{index:03}.png")
    place: dict[str, int] = {}
    for plate, kind, mask in zip(plates.test, plates.kinds, plates.masks, strict=True):
        index = place[kind] = place.get(kind, -1) + 1
        _write(plate, root / "test" / kind / f"{index:03}.png")
        if kind != "good":
            _write(mask * 255, root / "ground_truth" / kind / f"{index:03}_mask.png")
    return root


def _write(image: Tensor, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    images.save_png(image.permute(1, 2, 0).squeeze(2).numpy(), path)
