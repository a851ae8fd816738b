"""Feed files made up by Hypothesis to the readers of images, model files and folders.

    python benchmarks/fuzz.py --minutes 10 --output docs/results

Whatever is fed, the answer is a result or one of fcdd's own errors, and it comes within seconds. Each reader gets so
many minutes, the three beside each other. The tests run the same for half a minute each (tests/test_fuzz.py).
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from PIL import Image

from fcdd import folders, images, modelfile, outputs
from fcdd.detector import onnxfile
from fcdd.detector.info import RUNTIME, described
from fcdd.errors import FcddError

SECONDS = 5.0  # within which every answer must come
FORMATS = ("PNG", "JPEG", "BMP", "TIFF", "WEBP", "GIF", "PPM")
MODES = ("1", "L", "P", "RGB", "RGBA", "I;16")
TYPICAL = {
    "settings": {"architecture": {"trunk": "t", "planes": 4}, "top": 0.01, "sigma": 8.0, "review": None},
    "seed": 0,
    "grid": {"shape": [32, 32], "stride": 8, "start": 3.5, "sigma": 4.0},
    "calibration": {"scores": [0.1, 0.2], "review": 0.05, "reject": 0.01, "reject_above": None},
    "card": {"good": 1, "calibration": 1, "defects": 0, "fingerprint": "", "trained": [], "versions": {}},
    "inside": ["1111"] * 4,
    "precision": "fp32",
    "parity": {},
}
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@st.composite
def encoded(draw: st.DrawFn) -> bytes:
    """A small image of some format and mode."""
    mode = draw(st.sampled_from(MODES))
    format_ = draw(st.sampled_from(FORMATS if mode in ("L", "RGB") else ("PNG",)))
    height, width = draw(st.tuples(st.integers(1, 9), st.integers(1, 9)))
    buffer = io.BytesIO()
    Image.new(mode, (width, height), draw(st.integers(0, 255)) if mode in ("L", "P", "I;16") else 0).save(
        buffer, format_
    )
    return buffer.getvalue()


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Bytes with some of them changed, cut off, doubled or put in."""
    content = bytearray(draw(whole))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, max(0, len(content) - 1)))
        piece = draw(st.binary(max_size=12) | st.just(b"\xff" * 8) | st.just(b"\x00" * 8))
        how = draw(st.sampled_from(("change", "insert", "cut", "double")))
        if how == "change":
            content[at : at + len(piece)] = piece
        elif how == "insert":
            content[at:at] = piece
        elif how == "cut":
            del content[at:]
        else:
            content[at:at] = content[: draw(st.integers(0, 64))]
    return bytes(content)


TENSOR = b"\x08\x02\x10\x01\x4a\x08" + bytes(8)  # of two numbers
GRAPH = b"\x08\x0a\x3a" + bytes([len(TENSOR) + 2]) + b"\x2a" + bytes([len(TENSOR)]) + TENSOR


def model_bytes(suffix: str) -> bytes:
    """A model file with a description and one tensor."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"m{suffix}"
        if suffix == ".onnx":
            onnxfile.write(path, GRAPH, TYPICAL)
        else:
            modelfile.write(path, "detector", {"a": torch.zeros(2)}, TYPICAL)
        return path.read_bytes()


def name(raw: bytes) -> bytes:
    """A name within a folder: never one that leads out of it."""
    return b"n" + raw.replace(b"/", b"_").replace(b"\0", b"_")


NAMES = (
    st.text(min_size=1, max_size=40).map(lambda text: text.encode("utf-8", "replace")) | st.binary(max_size=60)
).map(name)


def read_images(content: bytes, _: Path) -> None:
    """The readers of images and masks give arrays of the size that the header promises."""
    height, width = images.size(content)
    pixels = images.load(content)
    assert pixels.dtype == np.uint8
    assert pixels.shape == (height, width, 3)
    assert images.load_mask(content).shape == (height, width)


def read_model(made: tuple[str, bytes], folder: Path) -> None:
    """The readers of model files give tensors and an info, also where a damaged graph has a checksum that holds."""
    kind, content = made
    path = folder / f"m{kind}"
    if kind == ".graph":
        onnxfile.write(path, content, TYPICAL)
    else:
        path.write_bytes(content)
    if kind == ".safetensors":
        modelfile.read(path, "detector")
    else:
        onnxfile.read(path)


def read_info(change: tuple[list[str], Any], folder: Path) -> None:
    """A description with any value at any place is let through by its rules or refused."""
    info: Any = json.loads(json.dumps(TYPICAL))
    place = info
    for key in change[0][:-1]:
        place = place[key]
    place[change[0][-1]] = change[1]
    with described(folder / "m.onnx", info, RUNTIME):
        pass


def read_folder(entries: list[tuple[list[bytes], bytes, str]], folder: Path) -> None:
    """Folders of any names and files: images are found, those that cannot be read are named, nothing hangs."""
    root = folder / "tree"
    shutil.rmtree(root, ignore_errors=True)
    for parts, content, kind in entries:
        place = Path(os.fsdecode(os.path.join(os.fsencode(root), *parts)))
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            target = Path(f"{place}.png")
            if kind == "file":
                with target.open("xb") as file:
                    file.write(content)
            elif kind == "pipe":
                os.mkfifo(target)
            else:
                target.symlink_to(os.fsdecode(name(content)))
        except OSError:
            continue  # two entries of one name, or a name that the disk does not take
    root.mkdir(exist_ok=True)
    found = images.find(root)
    assert found == images.find(root)
    assert outputs.foreign(root) == sorted(os.listdir(root))
    usable, skipped = folders.usable(root, skip_bad=True)
    assert len(usable) + len(skipped) == len(found)


Target = tuple[st.SearchStrategy[Any], Callable[[Any, Path], None]]


def keys() -> st.SearchStrategy[list[str]]:
    paths = [[one] for one in TYPICAL] + [
        [one, two] for one, inner in TYPICAL.items() if isinstance(inner, dict) for two in inner
    ]
    return st.sampled_from(paths)


def model_file(kind: str) -> st.SearchStrategy[tuple[str, bytes]]:
    whole = GRAPH if kind == ".graph" else model_bytes(kind)
    return st.tuples(st.just(kind), damaged(st.just(whole)) | st.binary(max_size=200))


TARGETS: dict[str, Target] = {
    "images": (damaged(encoded()), read_images),
    "models": (
        st.one_of([model_file(".onnx"), model_file(".safetensors"), model_file(".graph")]),
        read_model,
    ),
    "descriptions": (st.tuples(keys(), ANY_JSON), read_info),
    "folders": (
        st.lists(
            st.tuples(
                st.lists(NAMES, min_size=1, max_size=3),
                damaged(encoded()),
                st.sampled_from(("file", "file", "file", "pipe", "link")),
            ),
            max_size=6,
        ),
        read_folder,
    ),
}


READERS = {"images": ("images",), "model files": ("models", "descriptions"), "folders": ("folders",)}
ROUND = 200  # files of one target in a row


@dataclass
class Tally:
    """What came of the files that were fed to a reader."""

    read: int = 0
    refused: int = 0  # with a typed error
    findings: list[str] = field(default_factory=list)  # tracebacks of everything else


def fuzz(reader: str, seconds: float) -> Tally:
    """Feed files to the targets of one of `READERS` in turn until `seconds` are over."""
    tally, end = Tally(), time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        for name in itertools.cycle(READERS[reader]):
            try:
                _feed(name, tally, Path(folder), end)
            except Exception:
                tally.findings.append(traceback.format_exc())
            if time.monotonic() > end:
                return tally
    raise AssertionError("the cycle has no end")


def _feed(name: str, tally: Tally, folder: Path, end: float) -> None:
    """A round of files for one target. The smallest file that gets another answer raises it."""
    strategy, read = TARGETS[name]

    @settings(
        max_examples=ROUND,
        deadline=None,  # of processor time below: the machine may be busy with other things
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(strategy)
    def one(made: Any) -> None:
        if time.monotonic() > end:
            return
        begun = time.process_time()
        try:
            read(made, folder)
            tally.read += 1
        except FcddError:
            tally.refused += 1
        assert time.process_time() - begun < SECONDS, "too slow"

    one()


def page(tallies: dict[str, Tally], minutes: float) -> str:
    """The figures as a page of the documentation."""
    lines = [
        "# Made-up files",
        "",
        f"Files made up by Hypothesis, {minutes:g} minutes a reader (`python benchmarks/fuzz.py`): damaged images of",
        "seven formats; damaged model files, graphs with a checksum that holds, and descriptions with any value at any",
        "place; folders with names of any bytes, pipes and links. A finding is an answer that is neither a result nor",
        f"one of fcdd's own errors, or one that takes more than {SECONDS:g} s of processor time.",
        "",
        "| reader | executions | read | refused with a typed error | findings |",
        "|---|---|---|---|---|",
    ]
    for name, tally in tallies.items():
        told = (tally.read + tally.refused + len(tally.findings), tally.read, tally.refused, len(tally.findings))
        lines.append(f"| {name} | " + " | ".join(f"{count:,}" for count in told) + " |")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0, help="for each reader")
    parser.add_argument("--reader", choices=list(READERS), action="append", help="one of them; all where none is named")
    parser.add_argument("--output", type=Path, help="folder to write fuzz.md to")
    options = parser.parse_args()
    readers = options.reader or list(READERS)
    with ProcessPoolExecutor(len(readers), multiprocessing.get_context("spawn")) as processes:
        made = list(processes.map(fuzz, readers, [60 * options.minutes] * len(readers)))
    told = page(dict(zip(readers, made, strict=True)), options.minutes)
    print(told, *(finding for tally in made for finding in tally.findings), sep="\n")
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        (options.output / "fuzz.md").write_text(told, encoding="utf-8")
    sys.exit(any(tally.findings for tally in made))


if __name__ == "__main__":
    main()
