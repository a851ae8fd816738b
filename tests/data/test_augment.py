"""Augmentation: windows, mirrors and jitter checked on images that carry their own coordinates, resizing on Pillow."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Generator, Tensor

from fcdd.data import augment


def seeded(seed: int = 0) -> Generator:
    return Generator().manual_seed(seed)


def coordinates(n: int, h: int, w: int) -> Tensor:
    """Images whose value is row·w + column + 1, so that every pixel tells where it came from."""
    return (torch.arange(h * w, dtype=torch.float32) + 1).view(1, 1, h, w).repeat(n, 1, 1, 1)


def colours(n: int, size: int, seed: int = 0) -> Tensor:
    return torch.rand(n, 3, size, size, generator=seeded(seed)) * 0.6 + 0.2


def luma(images: Tensor) -> Tensor:
    return 0.299 * images[:, 0] + 0.587 * images[:, 1] + 0.114 * images[:, 2]


def test_random_crop_cuts_windows_of_the_zero_padded_image() -> None:
    images = coordinates(400, 6, 7)
    masks = (images % 3 == 0).to(torch.uint8)
    crops, cropped_masks = augment.random_crop(images, 5, seeded(), padding=2, masks=masks)
    assert cropped_masks is not None
    padded = np.pad(images[0, 0].numpy(), 2)
    windows = {padded[r : r + 5, c : c + 5].tobytes(): (r, c) for r in range(6) for c in range(7)}
    found = [windows[crop[0].numpy().tobytes()] for crop in crops]
    assert len(set(found)) == 6 * 7
    assert torch.equal(cropped_masks, ((crops % 3 == 0) & (crops > 0)).to(torch.uint8))
    assert augment.random_crop(images, 5, seeded())[1] is None
    with pytest.raises(ValueError, match="cannot crop 8"):
        augment.random_crop(images, 8, seeded())


def test_random_flip_mirrors_half_of_the_images_with_their_masks() -> None:
    images = coordinates(200, 4, 4)
    flipped, masks = augment.random_flip(images, seeded(), (images % 2).to(torch.uint8))
    mirrored = (flipped == images.flip(3)).all((1, 2, 3))
    assert ((flipped == images).all((1, 2, 3)) ^ mirrored).all()
    assert 70 < mirrored.sum() < 130
    assert masks is not None
    assert torch.equal(masks, (flipped % 2).to(torch.uint8))


def test_to_size_crops_the_centre_or_resizes_as_pillow_does() -> None:
    images = colours(2, 24)
    assert torch.equal(augment.to_size(images, 16, "crop"), images[..., 4:20, 4:20])
    assert augment.to_size(images, 24) is images
    pixels = (images[0].permute(1, 2, 0).numpy() * 255).round().astype(np.uint8)
    expected = np.asarray(Image.fromarray(pixels).resize((10, 10), Image.Resampling.BILINEAR), np.float32) / 255
    assert np.abs(augment.to_size(images, 10)[0].permute(1, 2, 0).numpy() - expected).max() < 1.6 / 255
    with pytest.raises(ValueError, match="cannot crop 30"):
        augment.to_size(images, 30, "crop")


def test_crop_or_resize_does_one_or_the_other() -> None:
    images = colours(60, 12)
    masks = (images[:, :1] > 0.5).to(torch.uint8)
    output, moved = augment.crop_or_resize(images, 9, seeded(), masks)
    assert moved is not None
    assert moved.dtype == torch.uint8
    resized = augment.to_size(images, 9)
    windows = images.unfold(2, 9, 1).unfold(3, 9, 1).permute(0, 2, 3, 1, 4, 5)
    is_crop = (windows == output[:, None, None]).all(-1).all(-1).all(-1).any(-1).any(-1)
    is_resize = (output == resized).all((1, 2, 3))
    assert (is_crop ^ is_resize).all()
    assert 15 < is_crop.sum() < 45
    assert torch.equal(moved[is_crop], (output[is_crop, :1] > 0.5).to(torch.uint8))
    centres = ((torch.arange(9) + 0.5) * 12 / 9).long()
    assert torch.equal(moved[is_resize], masks[is_resize][:, :, centres][..., centres])


def test_brightness_and_contrast_follow_their_formulas() -> None:
    images = colours(300, 5) * 0.5
    factor = augment.color_jitter(images, 0.4, 0, 0, 0, seeded()) / images
    one = factor[:, :1, :1, :1]
    assert torch.allclose(factor, one.expand_as(factor), atol=1e-5)
    assert 0.6 <= one.min() < 0.65
    assert 1.35 < one.max() <= 1.4 + 1e-5
    dark = augment.color_jitter(images, 3.0, 0, 0, 0, seeded()) / images
    assert (dark.amax((1, 2, 3)) > 0).all()  # factors start at max(0, 1 − 3): none is negative, which would blacken
    assert dark[:, 0, 0, 0].min() < 0.1

    output = augment.color_jitter(images + 0.3, 0, 0.4, 0, 0, seeded())
    mean = luma(images + 0.3).mean((1, 2))[:, None, None, None]
    factor = (output - mean) / (images + 0.3 - mean)
    steady = factor.flatten(1).median(1).values
    assert torch.allclose(output, mean + steady[:, None, None, None] * (images + 0.3 - mean), atol=1e-4)
    assert 0.6 <= steady.min() < 0.65
    assert 1.35 < steady.max() <= 1.4 + 1e-4


def test_saturation_and_hue_leave_luma_alone() -> None:
    images = colours(100, 4) * 0.3 + 0.35
    grey = augment.color_jitter(images, 0, 0, 1.0, 0, seeded())
    assert torch.allclose(luma(grey), luma(images), atol=1e-5)
    assert not torch.allclose(grey, images, atol=0.05)
    turned = augment.color_jitter(images, 0, 0, 0, 0.1, seeded())
    for before, after in zip(images[:, :, 0, 0].tolist(), turned[:, :, 0, 0].tolist(), strict=True):
        y, i, q = colorsys.rgb_to_yiq(*before)
        yy, ii, qq = colorsys.rgb_to_yiq(*after)  # its coefficients are rounded to two digits
        assert yy == pytest.approx(y, abs=0.01)
        assert abs(complex(ii, qq)) == pytest.approx(abs(complex(i, q)), abs=0.012)
    hue = augment._turn_hue(torch.tensor([[0.6, 0.4, 0.4]]).view(1, 3, 1, 1), torch.tensor([0.3]))
    _, i, q = colorsys.rgb_to_yiq(0.6, 0.4, 0.4)
    _, ii, qq = colorsys.rgb_to_yiq(*hue.flatten().tolist())
    assert np.angle(complex(ii, qq) / complex(i, q)) == pytest.approx(0.3, abs=0.02)


def test_jitter_without_strength_is_identity_and_grey_images_skip_colour() -> None:
    images = colours(3, 4)
    assert torch.allclose(augment.color_jitter(images, 0, 0, 0, 0, seeded()), images, atol=1e-5)
    assert torch.equal(augment.color_jitter(images[:, :1], 0, 0, 0.9, 0.5, seeded()), images[:, :1])


def test_noise_has_the_stated_deviation() -> None:
    images = colours(50, 24)
    added = augment.gaussian_noise(images, 0.02, seeded()) - images
    assert added.std() == pytest.approx(0.02, rel=0.02)
    assert added.mean().abs() < 0.001

    contrast = torch.linspace(0.1, 1, 200).view(-1, 1, 1, 1)
    images = (torch.rand(200, 3, 16, 16, generator=seeded(1)) - 0.5) * contrast + 0.5
    added = augment.noise_by_std(images, seeded()) - images
    chosen = added.abs().amax((1, 2, 3)) > 0
    assert 70 < chosen.sum() < 130
    ratio = added.std((1, 2, 3))[chosen] / images.std((1, 2, 3))[chosen]
    assert ratio.mean() == pytest.approx(0.1, rel=0.02)
    assert ratio.max() < 0.115


@pytest.mark.parametrize("weakest", [0.0005, 0.005])
def test_mvtec_jitter_has_two_strengths(weakest: float) -> None:
    images = torch.full((2000, 1, 2, 2), 0.5)
    change = (augment.mvtec_jitter(images, seeded(), weakest) / images - 1).abs().amax((1, 2, 3))
    assert 0.035 < change.max() <= 0.0401
    # All of the weak half, and of the strong one the part that happens to be as weak.
    weak = (change <= weakest + 1e-6).float().mean()
    assert weak == pytest.approx(0.5 + 0.5 * weakest / 0.04, abs=0.04)


def test_the_papers_mvtec_pipeline_always_crops() -> None:
    """A crop keeps single pixels apart, a resize from 240 to 224 mixes them."""
    images = torch.zeros(64, 3, 240, 240)
    images[..., ::2, :] = 0.8
    for name, share in (("mvtec-crop", 1.0), ("mvtec", 0.5)):
        output, _ = augment.AUGMENTATIONS[name](images, None, 224, seeded())
        rows = output.mean((1, 3))
        contrast = (rows[:, 1:] - rows[:, :-1]).abs().amin(1) / 0.8
        assert (contrast > 0.9).float().mean() == pytest.approx(share, abs=0.15)


@pytest.mark.parametrize(("name", "channels", "given", "size"), [
    ("fmnist", 1, 28, 28), ("cifar", 3, 32, 32), ("imagenet", 3, 64, 56), ("voc", 3, 64, 56), ("mvtec", 3, 60, 56),
    ("mvtec-crop", 3, 60, 56), ("none", 3, 60, 56),
])  # fmt: skip
def test_pipelines_move_masks_with_images(name: str, channels: int, given: int, size: int) -> None:
    masks = torch.zeros(40, 1, given, given, dtype=torch.uint8)
    masks[:, :, 8:20, 6:24] = 1
    images = (masks * 0.8 + 0.1).repeat(1, channels, 1, 1).float()
    output, moved = augment.AUGMENTATIONS[name](images, masks, size, seeded(1))
    assert moved is not None
    assert output.shape == (40, channels, size, size)
    assert moved.shape == (40, 1, size, size)
    agree = ((output[:, :1] > 0.5) == moved.bool()).float().mean()
    assert agree > 0.985  # resized edges may fall on either side of ½
    again, none = augment.AUGMENTATIONS[name](images, None, size, seeded(1))
    assert none is None
    assert torch.equal(again, output)
    assert augment.TEST_TRANSFORMS[name](images, size).shape == output.shape


def test_only_imagenet_is_tested_on_centre_crops() -> None:
    images = colours(2, 20)
    assert set(augment.TEST_TRANSFORMS) == set(augment.AUGMENTATIONS)
    assert torch.equal(augment.TEST_TRANSFORMS["imagenet"](images, 12), images[..., 4:16, 4:16])
    assert torch.equal(augment.TEST_TRANSFORMS["mvtec"](images, 12), augment.to_size(images, 12, "resize"))
