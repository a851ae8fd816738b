"""The paper's objectives and those of the methods it compares with: pure functions of tensors.

y is 1 for anomalous and 0 for nominal samples, everywhere.
"""

from __future__ import annotations

from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

# Added to a score before its logarithm: far below any score that matters (1e-12 keeps all its float32 digits), and
# still large enough that the gradient 1/s stays finite where an anomaly sits exactly on the centre.
FLOOR = 1e-20

# Of SSIM, as its authors set them: the Gaussian window's reach and width in pixels, and the two constants.
WINDOW_REACH, WINDOW_SIGMA = 5, 1.5
STABLE_MEAN, STABLE_SPREAD = 0.01, 0.03


def pseudo_huber(phi: Tensor) -> Tensor:
    """A = √(‖φ‖² + 1) − 1 over the channel axis: φ (N, d, …) → A (N, 1, …) ≥ 0; a vector φ (n,) element-wise.

    Computed as ‖φ‖² / (√(‖φ‖² + 1) + 1), which keeps its digits where ‖φ‖² is far below 1.
    """
    squared = phi.square() if phi.dim() < 2 else phi.square().sum(1, keepdim=True)
    return squared / ((squared + 1).sqrt() + 1)


def log1mexp(s: Tensor) -> Tensor:
    """log(1 − e^−s) for s ≥ 0, accurate and with finite gradients from 0 to 1e4 in float32."""
    s = s + FLOOR
    small = s < 0.6931
    # Each branch sees only arguments it is safe for: torch.where would pass on the NaN gradient of the other.
    near = torch.log(-torch.expm1(-torch.where(small, s, torch.ones_like(s))))
    far = torch.log1p(-torch.exp(-torch.where(small, torch.ones_like(s), s)))
    return torch.where(small, near, far)


def classify(s: Tensor, y: Tensor) -> Tensor:
    """Hypersphere classification of scores s (N,): the mean of (1−y)·s − y·log(1 − e^−s)."""
    y = y.to(s.dtype)
    return ((1 - y) * s - y * log1mexp(s)).mean()


def fcdd(A: Tensor, y: Tensor) -> Tensor:
    """FCDD (eq. 2): A (N, 1, h, w) ≥ 0, y (N,); a sample's score s is the mean of its cells."""
    return classify(A.flatten(1).mean(1), y)


def hsc(phi: Tensor, y: Tensor) -> Tensor:
    """Hypersphere classification (eq. 1): φ (N, d), its centre in the last layer's bias; y (N,)."""
    return classify(pseudo_huber(phi).squeeze(1), y)


def fcdd_pixelwise(A_full: Tensor, Y: Tensor) -> Tensor:
    """Semi-supervised FCDD (eq. 3): A′ (N, 1, H, W) ≥ 0, masks Y (N, 1, H, W) in {0, 1}.

    Per sample the mean over pixels of (1−Y)·A′ minus log(1 − exp(−mean of Y·A′)). A sample without anomalous
    pixels has its first term only: the second would be infinite whatever the network does.
    """
    Y = Y.to(A_full.dtype)
    nominal = ((1 - Y) * A_full).flatten(1).mean(1)
    anomalous = log1mexp((Y * A_full).flatten(1).mean(1))
    return (nominal - torch.where(Y.flatten(1).any(1), anomalous, torch.zeros_like(anomalous))).mean()


def reconstruction(output: Tensor, images: Tensor) -> Tensor:
    """Squared error of an autoencoder, averaged over channels: (N, C, H, W) twice → (N, 1, H, W), its heatmap."""
    return (output - images).square().mean(1, keepdim=True)


def ssim(output: Tensor, images: Tensor, span: float = 1.0) -> Tensor:
    """Structural similarity per pixel, averaged over channels: (N, C, H, W) twice → (N, 1, H, W) in [−1, 1].

    (2·μx·μy + c₁)(2·σxy + c₂) / ((μx² + μy² + c₁)(σx² + σy² + c₂)), c₁ = (0.01·span)², c₂ = (0.03·span)², where
    means and covariances are weighed by an 11×11 Gaussian of σ 1.5, cut and renormalised at the borders. `span` is
    the range of values that images take.
    """
    rows, columns = (_window(side).to(images) for side in images.shape[2:])

    def local(x: Tensor) -> Tensor:
        return rows @ x @ columns.T

    mean_x, mean_y = local(output), local(images)
    spread = local(output.square()) + local(images.square()) - mean_x.square() - mean_y.square()
    covariance = local(output * images) - mean_x * mean_y
    c1, c2 = (STABLE_MEAN * span) ** 2, (STABLE_SPREAD * span) ** 2
    above = (2 * mean_x * mean_y + c1) * (2 * covariance + c2)
    below = (mean_x.square() + mean_y.square() + c1) * (spread + c2)
    return (above / below).mean(1, keepdim=True)


@lru_cache(maxsize=16)
def _window(side: int) -> Tensor:
    """(side, side): row i weighs the pixels around i; each row sums to one."""
    distance = torch.arange(side)[:, None] - torch.arange(side)
    weight = torch.exp(-distance.double().square() / (2 * WINDOW_SIGMA**2)) * (distance.abs() <= WINDOW_REACH)
    return (weight / weight.sum(1, keepdim=True)).float()


def deep_svdd(phi: Tensor, centre: Tensor) -> Tensor:
    """One-class Deep SVDD: the mean of ‖φ − c‖², φ (N, d), c (d,)."""
    return (phi - centre).square().sum(1).mean()


def deep_sad(phi: Tensor, centre: Tensor, y: Tensor, eta: float = 1.0) -> Tensor:
    """Deep SAD: ‖φ − c‖² for nominal, η / ‖φ − c‖² for anomalous samples, averaged; φ (N, d), c (d,), y (N,)."""
    distance = (phi - centre).square().sum(1)
    y = y.to(distance.dtype)
    return ((1 - y) * distance + eta * y / (distance + 1e-6)).mean()


def focal(logits: Tensor, y: Tensor, gamma: float = 2.0) -> Tensor:
    """Focal loss of a binary classifier, logits (N,), y (N,): the mean of (1 − p_t)^γ · BCE; γ = 0 is plain BCE."""
    y = y.to(logits.dtype)
    cross_entropy = F.binary_cross_entropy_with_logits(logits, y, reduction="none")
    # 1 − p_t as a sigmoid: 1 − exp(−BCE) would lose its digits where the classifier is sure.
    return (torch.sigmoid(logits * (1 - 2 * y)) ** gamma * cross_entropy).mean()


def unsure(logits: Tensor) -> Tensor:
    """Cross-entropy (N,) of the uniform distribution with logits (N, K): least where all answers are as likely."""
    return -F.log_softmax(logits, 1).mean(1)


def transformation(logits: Tensor, index: Tensor) -> Tensor:
    """GEO's score of one view: −log probability (N,) of the transformation `index` (N,) under logits (N, K)."""
    return F.cross_entropy(logits, index, reduction="none")
