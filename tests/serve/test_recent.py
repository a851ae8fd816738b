"""The window over the last images, and what the server tells of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import requests

from fcdd import images
from fcdd.detector.runtime import Runtime
from fcdd.serve.recent import EVERY, WINDOW, Recent

from .running import encoded, running


def looks_of(plate: Runtime, folder: Path) -> list[np.ndarray]:
    return [one.looks for one in plate.predict(images.find(folder / "test" / "good")) if one.looks is not None]


def test_a_full_window_is_compared_every_few_images(plate: Runtime, plate_folder: Path) -> None:
    usual = looks_of(plate, plate_folder)
    other = [one + np.array([40, 0, 0, 0, 0, 0, 0]) for one in usual]
    recent = Recent(plate)
    compared = [recent.add(usual[i % len(usual)]) for i in range(WINDOW)]
    assert compared == [False] * (WINDOW - 1) + [True]
    assert recent.warning is None
    compared = [recent.add(other[i % len(other)]) for i in range(WINDOW)]
    assert [i for i, done in enumerate(compared) if done] == [EVERY - 1, 2 * EVERY - 1, 3 * EVERY - 1, 4 * EVERY - 1]
    assert recent.warning is not None
    assert recent.warning.startswith(f"The last {WINDOW} images do not look like")
    assert "brighter by" in recent.warning
    for i in range(WINDOW):  # the lamp is back
        recent.add(usual[i % len(usual)])
    assert recent.warning is None


def test_a_model_that_does_not_know_says_nothing(plate_model: Path, plate_folder: Path) -> None:
    plate = Runtime(plate_model, threads=1)
    seen = looks_of(plate, plate_folder)[0]
    plate.looks = None
    recent = Recent(plate)
    for _ in range(WINDOW):
        recent.add(seen + 100)
    assert recent.warning is None


def test_the_server_warns_in_its_answers_and_its_metrics(plate: Runtime, plate_folder: Path) -> None:
    good = images.find(plate_folder / "test" / "good")
    brighter = [encoded(np.clip(images.load(p).astype(int) + 40, 0, 255).astype(np.uint8)) for p in good]
    with running({"plate": plate}) as address:

        def sent(count: int) -> str | None:
            files = [("image", (f"{i}.png", brighter[i % len(brighter)])) for i in range(count)]
            answers = requests.post(address + "/v1/models/plate/predict/batch", files=files, timeout=60).json()
            return answers["results"][-1]["prediction"]["warning"]

        assert sent(WINDOW // 2) is None
        sent(WINDOW // 2)
        warning = sent(1)
        assert warning is not None
        assert "brighter by" in warning
        metrics = requests.get(address + "/metrics", timeout=20).text
    assert 'fcdd_looks_differ{model="plate",trait="brightness"} 1.0' in metrics
    assert 'fcdd_looks_differ{model="plate",trait="blue"} 0.0' in metrics
