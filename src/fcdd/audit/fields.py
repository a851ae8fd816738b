"""What a hot cell really sees: its receptive field, as the layers allow it and as the gradient shows it."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from .evidence import Evidence, Pixels
from .findings import Finding, Illustration, Question, Severity
from .recurring import framed

MASS = 0.8  # share of the gradient that the outline of the effective field holds
EXAMPLE = "One cell of one image, exactly measured: an example to understand the heat by, not a test over images."
OWN = 0.5  # of the gradient must lie within the flagged region, else its heat comes from around it


def answer(evidence: Evidence, flagged: list[Finding]) -> list[Finding]:
    """The field of the hottest cell in the region of each flagged cue, or of the hottest cell of all where none is."""
    regions = [(finding, _carrier(evidence, finding)) for finding in flagged if finding.cue and finding.files]
    if regions:
        return [_of_region(evidence, finding, index) for finding, index in regions]
    index = int(np.argmax(evidence.scores))
    place = int(evidence.hot[index, 0])
    gradient = effective(evidence, index, place)
    return [
        Finding(
            Question.FIELDS,
            Severity.NONE,
            "What the hottest cell sees",
            f"The hottest cell of all is on {evidence.paths[index].name}. {_sizes(evidence, gradient)}",
            "Trust where a region is, not its exact outline.",
            _images(evidence, index, place, gradient),
            power=EXAMPLE,
        )
    ]


def _carrier(evidence: Evidence, finding: Finding) -> int:
    names = [str(path) for path in evidence.paths]
    return names.index(finding.files[0])


def _of_region(evidence: Evidence, finding: Finding, index: int) -> Finding:
    assert finding.cue is not None
    box = finding.cue.box(evidence.detector.grid.shape)
    inside = evidence.detector.grid.inside(finding.cue.mask(evidence.detector.grid.shape))
    place = int(np.argmax(np.where(inside, evidence.cells[index], -1)))
    gradient = effective(evidence, index, place)
    own = float(gradient[box].sum() / max(float(gradient.sum()), 1e-12))
    return Finding(
        Question.FIELDS,
        Severity.NONE if own >= OWN else Severity.LOW,
        "What the flagged region's hottest cell sees",
        f"{own:.0%} of what this cell reacts to lies within the marked place. {_sizes(evidence, gradient)}",
        "Nothing to do."
        if own >= OWN
        else "The heat at this place comes largely from around it: look at the neighbourhood as well.",
        [
            Illustration("the marked place", evidence.shown(framed(evidence.inputs[index], box))),
            *_images(evidence, index, place, gradient),
        ],
        effect=1 - own,
        figures={"within_the_place": own},
        power=EXAMPLE,
    )


def effective(evidence: Evidence, index: int, place: int) -> NDArray[np.float32]:
    """|∂A(cell)/∂pixel| (H, W), ≥ 0, over all colours, of image `index` and cell `place` of the flattened grid."""
    image = torch.from_numpy(evidence.inputs[index]).permute(2, 0, 1)[None].float().requires_grad_(True)
    A = evidence.detector.network(image)
    (gradient,) = torch.autograd.grad(A.flatten()[place], image)
    # Levelling the light gives every pixel of the image the same small part in every cell; it is no field.
    level = gradient[0].flatten(1).median(1).values[:, None, None]
    found: NDArray[np.float32] = (gradient[0] - level).abs().sum(0).numpy()
    return found


def outline(gradient: NDArray[np.float32]) -> NDArray[np.bool_]:
    """(H, W): the fewest pixels that hold `MASS` of a gradient (H, W), ≥ 0."""
    ordered = np.sort(gradient.ravel())[::-1]
    enough = int(np.searchsorted(np.cumsum(ordered, dtype=np.float64), MASS * float(ordered.sum(dtype=np.float64))))
    return np.asarray(gradient >= ordered[min(enough, len(ordered) - 1)], np.bool_)


def _sizes(evidence: Evidence, gradient: NDArray[np.float32]) -> str:
    widest = evidence.detector.network.reach
    side = float(np.sqrt(outline(gradient).sum()))
    return (
        f"Its layers let it see {widest} × {widest} pixels of the resized image; {MASS:.0%} of what it reacts to "
        f"lies on as many pixels as a square of {side:.0f} has."
    )


def _images(evidence: Evidence, index: int, place: int, gradient: NDArray[np.float32]) -> list[Illustration]:
    """The image under its heat, and with all that the cell does not react to darkened."""
    seen: Pixels = evidence.inputs[index].copy()
    dark = ~outline(gradient)
    seen[dark] = seen[dark] // 4
    grid = evidence.detector.grid
    row, column = (round(grid.start + grid.stride * n) for n in divmod(place, grid.cells[1]))
    cell = tuple(slice(max(n - grid.stride // 2, 0), n + grid.stride // 2) for n in (row, column))
    return [
        evidence.image(index),
        Illustration(
            f"the cell (framed) and the pixels that hold {MASS:.0%} of its reaction",
            evidence.shown(framed(seen, (cell[0], cell[1]))),
        ),
    ]
