"""The page docs/results/speed.md from the files that benchmarks/speed.py kept."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

NAMES = {
    "before": "before, its default (`nominal`)",
    "nominal": "now, `nominal`",
    "fast": "now, `--quality fast`",
    "standard": "now, the default",
}


def page(kept: Path, source: str) -> str:
    """All tables for which there are measurements."""
    read = {path.stem: json.loads(path.read_text()) for path in sorted(kept.glob("*.json"))}
    parts = [_head(source), _against(read), _exported(read), _peak(read), _growth(read), _profile(read), _took(read)]
    return "\n".join(line for part in parts for line in part) + "\n"


def _head(source: str) -> list[str]:
    return [
        "# Speed",
        "",
        "Made by `make bench-speed DATA=… BEFORE=…` (benchmarks/speed.py): this state against an earlier one, in the",
        f"same run and on the same files: MVTec's {source} at 1024 × 1024 pixels as PNG. Every measurement is a",
        "process of its own, the states take turns, the median of the rounds is shown. CPU seconds are of all threads;",
        "where the machine had other work to do, they are the fairer figure.",
        "",
    ]


def _rounds(read: dict[str, Any], what: str, name: str, key: str) -> list[float]:
    return [told[name][key] for file, told in read.items() if file.startswith(f"{what}-") and name in told]


def _against(read: dict[str, Any]) -> list[str]:
    lines = [
        "## Against the earlier state",
        "",
        "| | | seconds | CPU seconds | faster | by CPU | GB |",
        "|---|---|---|---|---|---|---|",
    ]
    for what, title, keys in (
        ("train", "training on 245 images, with its report", ("wall", "cpu_all")),
        ("predict", "`predict` of 60 images with overlays", ("wall", "cpu_all")),
        ("score", "`score_samples` of 32 images from memory", ("seconds", "cpu")),
    ):
        first: list[float] = []
        for name, shown in NAMES.items():
            figures = [_rounds(read, what, name, key) for key in keys]
            if not figures[0]:
                continue
            wall, cpu = (median(values) for values in figures)
            memory = median(_rounds(read, what, name, "memory_gb"))
            first = first or [wall, cpu]
            faster = f"{first[0] / wall:.1f} × | {first[1] / cpu:.1f} ×"
            lines.append(f"| {title} | {shown} | {wall:.1f} | {cpu:.1f} | {faster} | {memory:.1f} |")
    return [*lines, ""]


def _exported(read: dict[str, Any]) -> list[str]:
    if "export" not in read:
        return []
    lines = [
        "## Exported, in 32 and in 8 bits",
        "",
        "Images a second from memory, all cores; the loss is that of synthetic defects on held-out images.",
        "",
        "| method | precision | MB | ONNX Runtime | OpenVINO | image AUROC, loss | pixel AUROC, loss |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, told in read["export"].items():
        if name == "took":
            continue
        method, precision = name.rsplit(" ", 1)
        speeds = [median(run["images"] / run["seconds"] for run in told[b]) for b in ("onnxruntime", "openvino")]
        p = told["parity"]
        loss = (
            f"{p['image_auroc']:.4f}, {p['image_loss']:+.4f} | {p['pixel_auroc']:.4f}, {p['pixel_loss']:+.4f}"
            if "image_loss" in p
            else "– | –"
        )
        shown = NAMES[method].removeprefix("now, ")
        lines.append(
            f"| {shown} | {precision} | {told['megabytes']:.1f} | {speeds[0]:.1f} | {speeds[1]:.1f} | {loss} |"
        )
    return [*lines, ""]


def _peak(read: dict[str, Any]) -> list[str]:
    if "peak" not in read:
        return []
    told = read["peak"]
    lines = [
        "## Share of the machine's peak",
        "",
        f"Products of matrices of 3072 × 3072: {told['onnxruntime']:.0f} GFLOP/s by ONNX Runtime, {told['torch']:.0f} "
        "by torch. What `score_samples` reaches of the former, resizing and all:",
        "",
        "| | GFLOP an image | images/s | share of the peak |",
        "|---|---|---|---|",
    ]
    for name, work in told["work"].items():
        seconds = _rounds(read, "score", name, "seconds")
        if seconds:
            speed = _rounds(read, "score", name, "images")[0] / median(seconds)
            lines.append(f"| {NAMES[name]} | {work:.1f} | {speed:.1f} | {work * speed / told['onnxruntime']:.0%} |")
    return [*lines, ""]


def _growth(read: dict[str, Any]) -> list[str]:
    lines = ["## How costs grow", ""]
    counts = sorted((int(f.removeprefix("growth-")), told) for f, told in read.items() if f.startswith("growth-"))
    if counts:
        lines += ["| good images of 256 × 256 | method | training, s | CPU s | GB |", "|---|---|---|---|---|"]
        for count, told in counts:
            for method in ("nominal", "sum"):
                t = told[method]
                lines.append(
                    f"| {count:,} | `{method}` | {t['wall']:.0f} | {t['cpu_all']:.0f} | {t['memory_gb']:.1f} |"
                )
        lines.append("")
    sides = sorted((int(f.removeprefix("size-")), told) for f, told in read.items() if f.startswith("size-"))
    if sides:
        lines += [
            "Scoring by the default, trained at 1024; every image is brought to the input's size first.",
            "",
            "| pixels | images/s | CPU ms an image | GB |",
            "|---|---|---|---|",
        ]
        for side, t in sides:
            speed = f"{t['images'] / t['seconds']:.1f} | {1000 * t['cpu'] / t['images']:.0f}"
            lines.append(f"| {side} × {side} | {speed} | {t['memory_gb']:.1f} |")
        lines.append("")
    return lines if len(lines) > 2 else []


def _profile(read: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    for name, hottest in read.get("profile", {}).items():
        if name != "took":
            lines += [f"**{name}**", "", "```text", *hottest, "```", ""]
    return ["## Profiles", "", "Functions with the most samples of py-spy, all threads.", "", *lines] if lines else []


def _took(read: dict[str, Any]) -> list[str]:
    took = ", ".join(f"{name} {told['took']}" for name, told in read.items())
    return ["## How long the measurements took", "", f"In seconds: {took}."]
