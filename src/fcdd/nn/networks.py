"""Networks by name."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from fcdd.errors import ModelError
from fcdd.nn import fcn
from fcdd.nn.baselines import HIDDEN, OUTPUTS, Autoencoder, Dense
from fcdd.nn.fcn import FCN, NETWORKS

BASELINE_SIZES = tuple(OUTPUTS)  # sides of input that dense networks and autoencoders take

VGG_SIZE = 224  # of the images that VGG's dense layers were made for

# Networks whose first part the paper takes from ImageNet, and what to tell a user who has no weights yet.
PRETRAINED = {
    "vgg11": "torchvision's vgg11_bn (https://download.pytorch.org/models/vgg11_bn-6002323d.pth)",
    "vgg16": "torchvision's vgg16 (https://download.pytorch.org/models/vgg16-397923af.pth)",
}


def build(name: str, **options: Any) -> FCN:
    """A network of the paper with fresh weights; `options` go to its function (`kernel`, `dimensions`)."""
    return NETWORKS[name](**options)


@lru_cache(maxsize=16)
def field_size(name: str, kernel: int = 0) -> int:
    """Side of the receptive field of the network `name`, with another kernel than its own where one is given."""
    with torch.device("meta"):  # no weights, so no random numbers are drawn either
        return build(name, **({"kernel": kernel} if kernel else {})).field.size


def build_dense(name: str, size: int, outputs: int = 0, bias: bool = True, **options: Any) -> Dense:
    """Dense layers of `outputs` on the trunk of the network `name`, for images of `size`²; fresh weights.

    VGG11-BN at its own size comes whole, with two dense layers, as the authors have it; others get one dense layer.
    """
    if (name, size) == ("vgg11", VGG_SIZE):
        return Dense(fcn.vgg11_whole(), size, outputs, bias, HIDDEN)
    return Dense(build(name, **options), size, outputs, bias)


def build_autoencoder(size: int) -> Autoencoder:
    """The autoencoder for images of `size`², gray at 28 px and colour above, as the paper's data are."""
    return Autoencoder(1 if size == 28 else 3, size)


def load_weights(network: FCN, name: str, path: Path | None) -> None:
    """Fill a pretrained network's features from a .safetensors or .pth file with torchvision's key names."""
    remedy = f"pass --weights FILE (.pth or .safetensors) with {PRETRAINED[name]}, or --weights none for a random start"
    if path is None:
        raise ModelError(f"{name} starts from ImageNet weights: {remedy}")
    try:
        fcn.load_features(network, read_tensors(path))
    except KeyError as missing:
        raise ModelError(f"{path}: holds no {missing}, so it is not of {name}; {remedy}") from None
    except ValueError as wrong:
        raise ModelError(f"{path}: {wrong}, so it is not of {name}; {remedy}") from None


def read_tensors(path: Path) -> dict[str, Any]:
    """The tensors of a .safetensors file, or of a .pth file read without letting a pickle run code."""
    import pickle

    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not path.is_file():
        raise ModelError(f"{path}: no such file")
    _check_name(path)
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    except (SafetensorError, pickle.UnpicklingError, RuntimeError, EOFError, OSError) as error:
        raise ModelError(f"{path}: not a readable weights file ({str(error).splitlines()[0]})") from None
    if not isinstance(tensors, dict) or not all(isinstance(v, torch.Tensor) for v in tensors.values()):
        raise ModelError(f"{path}: holds no state dict of tensors")
    return tensors


def _check_name(path: Path) -> None:
    """Torchvision's files carry the start of their SHA-256 in their name; ModelError where such a file has another."""
    named = re.search(r"-([0-9a-f]{8,64})\.pth$", path.name)
    if named is None:
        return
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if not found.startswith(named.group(1)):
        raise ModelError(f"{path}: SHA-256 {found[:8]}… is not the one in its name; it is damaged, fetch it again")
