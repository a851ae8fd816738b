"""Synthetic anomalies: exact masks, the authors' confetti against a slow drawing of it, sizes and places of defects."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from fcdd.anomalies.confetti import _confetti_noise, _draw_squares, confetti
from fcdd.anomalies.cutpaste import cutpaste
from fcdd.anomalies.scratch import scratch
from fcdd.anomalies.synthetic import KINDS, mixture
from fcdd.anomalies.texture import texture

DEFECTS = ("scratch", "stain", "cutpaste", "texture")
EVERY = ("confetti", *DEFECTS, "mixture")


def seeded(seed: int = 0) -> Generator:
    return Generator().manual_seed(seed)


def draw(kind: str, images: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A kind by its name, or a mixture of several."""
    return mixture(images, generator) if kind == "mixture" else KINDS[kind](images, generator, None, None)


def smooth_images(n: int, c: int, h: int, w: int, seed: int = 0) -> Tensor:
    return F.interpolate(torch.rand(n, c, 6, 6, generator=seeded(seed)), (h, w), mode="bilinear")


def extent(mask: Tensor) -> tuple[int, int]:
    rows, columns = mask.squeeze().nonzero().unbind(1)
    return int(rows.max() - rows.min() + 1), int(columns.max() - columns.min() + 1)


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("shape", [(12, 3, 64, 64), (12, 1, 28, 28), (5, 3, 48, 90), (1, 3, 32, 32)])
@pytest.mark.parametrize("content", ["smooth", "black", "white", "grey", "noise"])
def test_mask_is_exactly_what_changed_and_never_empty(kind: str, shape: tuple[int, ...], content: str) -> None:
    images = {
        "smooth": smooth_images(*shape),
        "black": torch.zeros(shape),
        "white": torch.ones(shape),
        "grey": torch.full(shape, 0.5),
        "noise": torch.rand(shape, generator=seeded(1)),
    }[content]
    before = images.clone()
    output, masks = draw(kind, images, seeded(2))
    assert torch.equal(images, before)
    assert output.shape == images.shape
    assert output.dtype == torch.float32
    assert masks.shape == (shape[0], 1, *shape[2:])
    assert masks.dtype == torch.uint8
    assert output.min() >= 0
    assert output.max() <= 1
    assert torch.equal(masks.bool(), (output != images).any(1, keepdim=True))
    assert (masks.amax((1, 2, 3)) == 1).all()
    changed = (output - images).abs().amax(1, keepdim=True)[masks.bool()]
    assert changed.min() >= 1 / 255


@pytest.mark.parametrize("kind", EVERY)
def test_equal_generators_give_equal_anomalies(kind: str) -> None:
    images = smooth_images(6, 3, 40, 40)
    first, again, other = (draw(kind, images, seeded(s))[0] for s in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(first[0] - images[0], first[1] - images[1])


@pytest.mark.parametrize(("shape", "both_signs"), [((3, 3, 224, 224), False), ((4, 1, 60, 90), True)])
def test_confetti_noise_equals_a_slow_drawing(shape: tuple[int, ...], both_signs: bool) -> None:
    n, c, h, w = shape
    s = min(h, w) / 224
    radius, margin = max(1, round(12 * s)), 60
    squares = _draw_squares(torch.Size(shape), both_signs, seeded(5))
    layers = torch.zeros(2, n, c, h + 2 * margin, w + 2 * margin)
    y, x = torch.meshgrid(torch.arange(-margin, h + margin), torch.arange(-margin, w + margin), indexing="ij")
    for k in range(len(squares.half)):
        i, kind, cy, cx, half, angle = (
            getattr(squares, name)[k].item() for name in ("image", "kind", "row", "column", "half", "angle")
        )
        u = (x - cx) * math.cos(angle) + (y - cy) * math.sin(angle)
        v = (y - cy) * math.cos(angle) - (x - cx) * math.sin(angle)
        inside = (u.abs() <= half) & (v.abs() <= half)
        layers[kind, i, :, inside] = squares.offset[k][:, None]
    taps = torch.exp(-(torch.arange(-radius, radius + 1) ** 2) / (2 * (5 * s) ** 2))
    kernel = torch.outer(taps, taps) / taps.sum() ** 2
    summed = layers.sum(0).view(n * c, 1, h + 2 * margin, w + 2 * margin)
    expected = F.conv2d(summed, kernel[None, None], padding=radius)[..., margin:-margin, margin:-margin]
    noise = _confetti_noise(torch.Size(shape), both_signs, seeded(5))
    assert torch.allclose(noise, expected.view(shape), atol=1e-5)


def test_confetti_has_the_authors_constants() -> None:
    shape = torch.Size((4000, 3, 224, 224))
    squares = _draw_squares(shape, False, seeded(6))
    for kind, probability in ((0, 1.8e-5), (1, 1.2e-5)):
        counts = squares.image[squares.kind == kind].bincount(minlength=4000)
        expected = 224**2 * probability + (1 - probability) ** (224**2)  # binomial, with none counted as one
        assert counts.min() == 1
        assert counts.float().mean() == pytest.approx(expected, abs=0.04)
    assert squares.half.min() >= 4
    assert squares.half.max() <= 27
    assert squares.half.mean() == pytest.approx(15.5, abs=0.4)
    assert squares.angle.abs().max() <= math.pi / 4
    coloured = squares.offset[squares.kind.flatten() == 0]
    assert (squares.offset[squares.kind.flatten() == 1] == -1).all()
    assert coloured.max() <= 0
    assert coloured.min() >= -256 / 255
    assert coloured.mean() == pytest.approx(-128 / 255, abs=0.02)
    assert torch.corrcoef(coloured.T)[0, 1].abs() < 0.05
    signs = _draw_squares(shape, True, seeded(6)).offset[:, 0].sign()
    assert signs.mean().abs() < 0.04


def test_confetti_keeps_its_look_at_other_sizes() -> None:
    small, large = (confetti(torch.full((400, 1, k, k), 0.5), seeded(7))[1].float().mean().item() for k in (56, 112))
    assert small == pytest.approx(large, rel=0.12)
    assert large == pytest.approx(0.13, abs=0.025)  # of the area, as measured on the authors' code


def test_confetti_signs() -> None:
    grey = torch.full((20, 3, 64, 64), 0.5)
    assert (confetti(grey, seeded())[0] <= grey).all()
    both = confetti(grey, seeded(), both_signs=True)[0]
    assert (both < grey).any()
    assert (both > grey).any()
    black = torch.zeros(20, 3, 64, 64)
    assert (confetti(black, seeded())[0].amax((1, 2, 3)) > 0.1).all()


@pytest.mark.parametrize(
    ("kind", "longest"), [("scratch", 0.47), ("stain", 0.28), ("texture", 0.28), ("cutpaste", 0.36)]
)
def test_sizes_range_from_two_to_twenty_five_percent(kind: str, longest: float) -> None:
    images = smooth_images(200, 3, 96, 96)
    output, masks = draw(kind, images, seeded(8))
    sizes = torch.tensor([max(extent(mask)) for mask in masks]) / 96
    assert sizes.max() <= longest
    assert sizes.min() < 0.08
    assert sizes.max() > 0.2
    peaks = (output - images).abs().amax((1, 2, 3))
    assert peaks.min() >= 8 / 255 - 1e-6
    assert peaks.min() < 0.15
    assert peaks.max() > 0.5


def test_scratches_are_thin() -> None:
    _, masks = scratch(torch.full((100, 1, 128, 128), 0.5), seeded(9))
    thickness = masks.float().sum((1, 2, 3)) / torch.tensor([math.hypot(*extent(mask)) for mask in masks])
    assert thickness.median() < 4


@pytest.mark.parametrize("kind", DEFECTS)
def test_defects_are_centred_on_the_foreground(kind: str) -> None:
    images = smooth_images(40, 3, 80, 80)
    foreground = torch.zeros(40, 1, 80, 80, dtype=torch.uint8)
    foreground[:20, :, 20, 60] = 1
    foreground[20:39, :, 50, 10] = 1  # the last image has no foreground at all
    for _, masks in (
        KINDS[kind](images, seeded(10), foreground, None),
        mixture(images, seeded(10), (kind,), foreground),
    ):
        for mask, part in zip(masks[:39], foreground[:39], strict=True):
            offset = mask[0].nonzero() - part[0].nonzero()
            assert offset.float().norm(dim=1).min() <= 3
            assert offset.abs().max() <= 0.42 * 80


def test_texture_comes_from_the_source() -> None:
    images = torch.full((30, 3, 64, 64), 0.1)
    source = torch.rand(5, 3, 32, 32, generator=seeded(11)) * 0.1 + 0.85
    output, masks = texture(images, seeded(12), source=source)
    changed = output.permute(0, 2, 3, 1)[masks.squeeze(1).bool()]
    assert changed.min() > 0.1
    assert changed.max() <= 0.95
    assert changed.max() > 0.75
    plain, _ = mixture(images, seeded(12), ("texture",), source=source)
    assert plain.max() > 0.75


def test_cutpaste_takes_from_itself_and_from_others() -> None:
    level = torch.tensor([0.2, 0.8]).repeat(50).view(-1, 1, 1, 1)
    output, _ = cutpaste(level.expand(100, 1, 64, 64).clone(), seeded(13))
    gained = (output - level).flatten(1)
    peak = gained.gather(1, gained.abs().argmax(1, keepdim=True)).flatten().abs()
    from_other = (peak - 0.6).abs() < 1e-5  # a whole patch of the other level
    redrawn = (peak - 0.25).abs() < 1e-5  # its own level would not show
    assert (from_other | redrawn).all()
    assert 10 <= from_other.sum() <= 40  # ½ others × ½ of the other level


def test_mixture_draws_every_kind_and_knows_no_other() -> None:
    images = torch.full((200, 1, 64, 64), 0.5)
    _, masks = mixture(images, seeded(14), ("confetti", "scratch"))
    large = (masks.float().mean((1, 2, 3)) > 0.02).sum()
    assert 75 <= large <= 125
    with pytest.raises(KeyError, match="rust"):
        mixture(images, seeded(14), ("rust",))
