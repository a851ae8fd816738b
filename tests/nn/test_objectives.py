"""The objectives against independent formulas in float64, and their gradients at the ends of the range."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from fcdd.nn import objectives


@pytest.mark.parametrize("score", [1e-12, 1e-8, 1e-4, 0.1, 0.6931, 0.7, 1.0, 5.0, 30.0, 88.0, 1e3, 1e4])
def test_log1mexp_in_float32_matches_float64(score: float) -> None:
    s = torch.tensor(score, requires_grad=True)
    value = objectives.log1mexp(s)
    value.backward()  # type: ignore[no-untyped-call]
    rounded = s.item()
    exact = math.log(-math.expm1(-rounded)) if score < 30 else math.log1p(-math.exp(-score))
    slope = 1 / math.expm1(rounded) if score < 700 else 0.0
    assert value.item() == pytest.approx(exact, rel=2e-6, abs=1e-37)
    assert s.grad is not None
    assert s.grad.item() == pytest.approx(slope, rel=2e-5, abs=1e-37)


@pytest.mark.parametrize("size", [0.0, 1e-25, 1e-19])
def test_an_anomaly_on_the_centre_has_a_finite_gradient_that_pushes_it_out(size: float) -> None:
    phi = torch.full((1, 1, 2, 2), size, requires_grad=True)
    loss = objectives.fcdd(objectives.pseudo_huber(phi), torch.tensor([1]))
    loss.backward()  # type: ignore[no-untyped-call]
    assert phi.grad is not None
    assert loss.isfinite()
    assert phi.grad.isfinite().all()
    assert (phi.grad <= 0).all()


@pytest.mark.parametrize("phi", [1e-12, 1e-6, 1e-3, 0.5, 3.0, 1e4])
def test_pseudo_huber_keeps_small_and_large_values(phi: float) -> None:
    value = objectives.pseudo_huber(torch.full((1, 1, 1, 1), phi))
    squared = float(torch.tensor(phi)) ** 2
    assert value.item() == pytest.approx(squared / (math.sqrt(squared + 1) + 1), rel=1e-6)
    assert value.item() == pytest.approx(math.sqrt(squared + 1) - 1, rel=1e-5, abs=1e-12)


def test_pseudo_huber_of_d_channels_is_the_norm_over_them() -> None:
    phi = torch.randn(3, 4, 5, 6)
    expected = torch.sqrt(torch.linalg.vector_norm(phi.double(), dim=1, keepdim=True) ** 2 + 1) - 1
    assert torch.allclose(objectives.pseudo_huber(phi), expected.float(), atol=1e-6)
    assert torch.allclose(objectives.pseudo_huber(phi[0, 0, 0]), torch.sqrt(phi[0, 0, 0] ** 2 + 1) - 1, atol=1e-6)


def test_fcdd_is_equation_2() -> None:
    A, y = torch.rand(4, 1, 3, 3) * 3, torch.tensor([0, 1, 0, 1])
    expected = 0.0
    for sample, label in zip(A, y, strict=True):
        s = sample.double().mean().item()
        expected += (1 - label.item()) * s - label.item() * math.log(1 - math.exp(-s))
    assert objectives.fcdd(A, y).item() == pytest.approx(expected / 4, rel=1e-5)


def test_a_batch_of_anomalies_is_still_pushed_away() -> None:
    A = torch.full((2, 1, 2, 2), 0.5, requires_grad=True)
    objectives.fcdd(A, torch.ones(2)).backward()
    assert A.grad is not None
    assert (A.grad < 0).all()


def test_hsc_is_fcdd_of_the_vectors_norm() -> None:
    phi, y = torch.randn(5, 8), torch.tensor([0, 1, 1, 0, 1])
    s = torch.sqrt(phi.double().square().sum(1) + 1) - 1
    expected = torch.where(y == 1, -torch.log(1 - torch.exp(-s)), s).mean()
    assert objectives.hsc(phi, y).item() == pytest.approx(expected.item(), rel=1e-5)


def test_pixelwise_is_equation_3_and_skips_the_log_of_clean_samples() -> None:
    A, Y = torch.rand(3, 1, 4, 4) * 2, torch.zeros(3, 1, 4, 4)
    Y[0, 0, :2] = 1
    Y[1] = 1
    expected = 0.0
    for a, m in zip(A.double(), Y.double(), strict=True):
        expected += ((1 - m) * a).mean().item()
        if m.any():
            expected -= math.log(1 - math.exp(-(m * a).mean().item()))
    A.requires_grad_()
    loss = objectives.fcdd_pixelwise(A, Y)
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss.item() == pytest.approx(expected / 3, rel=1e-5)
    assert A.grad is not None
    assert (A.grad[2] > 0).all()
    assert (A.grad[1] < 0).all()
    assert (A.grad[0, 0, 2:] > 0).all()


def test_reconstruction_is_the_mean_squared_error_per_pixel() -> None:
    a, b = torch.rand(2, 3, 4, 4), torch.rand(2, 3, 4, 4)
    error = objectives.reconstruction(a, b)
    assert error.shape == (2, 1, 4, 4)
    expected = sum((a - b)[1, c, 2, 3].item() ** 2 for c in range(3)) / 3
    assert error[1, 0, 2, 3].item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("span", [1.0, 4.0])
def test_ssim_is_the_formula_of_wang_et_al(span: float) -> None:
    x, y = torch.rand(2, 2, 14, 12) * span, torch.rand(2, 2, 14, 12) * span
    similarity = objectives.ssim(x, y, span)
    assert similarity.shape == (2, 1, 14, 12)
    for i, j in [(0, 0), (7, 6), (13, 4)]:
        rows, columns = np.meshgrid(np.arange(14), np.arange(12), indexing="ij")
        weight = np.exp(-((rows - i) ** 2 + (columns - j) ** 2) / (2 * 1.5**2))
        weight[(abs(rows - i) > 5) | (abs(columns - j) > 5)] = 0
        expected = []
        for a, b in zip(x[1].double().numpy(), y[1].double().numpy(), strict=True):
            mean_a, mean_b = np.average(a, weights=weight), np.average(b, weights=weight)
            covariance = np.cov(a.ravel(), b.ravel(), aweights=weight.ravel(), ddof=0)
            c1, c2 = (0.01 * span) ** 2, (0.03 * span) ** 2
            luminance = (2 * mean_a * mean_b + c1) / (mean_a**2 + mean_b**2 + c1)
            expected.append(luminance * (2 * covariance[0, 1] + c2) / (covariance[0, 0] + covariance[1, 1] + c2))
        assert similarity[1, 0, i, j].item() == pytest.approx(np.mean(expected), rel=1e-3, abs=1e-4)
    assert torch.allclose(objectives.ssim(x, x, span), torch.ones(2, 1, 14, 12), atol=1e-4)


def test_the_score_of_a_transformation_is_its_negative_log_probability() -> None:
    logits, index = torch.randn(4, 6), torch.tensor([0, 5, 2, 2])
    probability = logits.double().exp() / logits.double().exp().sum(1, keepdim=True)
    expected = [-math.log(probability[n, k].item()) for n, k in enumerate(index.tolist())]
    assert objectives.transformation(logits, index).tolist() == pytest.approx(expected, rel=1e-5)


def test_the_baselines_losses() -> None:
    phi, centre, y = torch.tensor([[1.0, 2.0], [4.0, 6.0]]), torch.tensor([1.0, 2.0]), torch.tensor([0, 1])
    assert objectives.deep_svdd(phi, centre).item() == pytest.approx(12.5)
    assert objectives.deep_sad(phi, centre, y, eta=2.0).item() == pytest.approx((0 + 2 / 25) / 2, rel=1e-4)
    logits = torch.tensor([2.0, -1.0])
    p = 1 / (1 + math.exp(-2.0)), 1 / (1 + math.exp(1.0))
    bce = -math.log(1 - p[0]), -math.log(p[1])
    assert objectives.focal(logits, y, gamma=0).item() == pytest.approx(sum(bce) / 2, rel=1e-5)
    assert objectives.focal(logits, y).item() == pytest.approx(
        (p[0] ** 2 * bce[0] + (1 - p[1]) ** 2 * bce[1]) / 2, rel=1e-5
    )
    assert objectives.focal(torch.tensor([-300.0]), torch.tensor([1])).isfinite()
