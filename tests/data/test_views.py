"""Views: another lamp changes light and not shape; a turned part keeps its mask on its defect."""

from __future__ import annotations

import torch

from fcdd.data.views import relit, turned


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_another_lamp_changes_the_level_and_keeps_the_shape() -> None:
    ramp = torch.linspace(40, 200, 64).expand(8, 3, 64, 64)
    lit = relit(ramp, generator())
    assert torch.equal(lit, lit.round())
    assert lit.min() >= 0
    assert lit.max() <= 255
    levels = lit.mean((1, 2, 3))
    assert levels.std() > 2
    for one in lit:
        assert torch.corrcoef(torch.stack([one.flatten(), ramp[0].flatten()]))[0, 1] > 0.99
    assert torch.equal(lit, relit(ramp, generator()))
    assert not torch.equal(lit, relit(ramp, generator(1)))


def test_a_bright_image_is_clipped_as_a_camera_would() -> None:
    white = torch.full((16, 3, 16, 16), 254.0)
    assert (relit(white, generator()) == 255).any()


def test_image_and_mask_turn_together() -> None:
    image = torch.zeros(1, 4, 48, 48)
    image[:, :, 8:20, 26:40] = 1.0  # the same square in the image and in its mask
    for seed in range(6):
        view = turned(image, generator(seed))
        assert view.shape == image.shape
        assert torch.allclose(view[:, 0], view[:, 3])
        assert 60 < view[:, 3].sum() < 300
    assert not torch.allclose(turned(image, generator(0)), turned(image, generator(1)))


def test_oblong_images_keep_their_shape() -> None:
    for seed in range(4):
        assert turned(torch.rand(1, 3, 32, 48), generator(seed)).shape == (1, 3, 32, 48)
