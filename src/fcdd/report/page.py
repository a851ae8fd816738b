"""ReportData → one self-contained HTML file, and the page of a folder of results. Nothing is fetched from anywhere."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from markupsafe import Markup

from fcdd.detector.calibration import Calibration, Limits, Verdict
from fcdd.files import utf8, write_atomically
from fcdd.metrics import Ranking, auroc, auroc_interval, rank
from fcdd.report import charts, html
from fcdd.report.content import VIEWS, Card, Item, ReportData, mistake
from fcdd.report.drawing import words

CHUNK = 40  # thumbnails are parsed in blocks of so many items, when the reader gets there
SYMBOLS = {Verdict.OK: "✓", Verdict.REVIEW: "?", Verdict.NG: "✕"}
LABELS = {0: "good", 1: "defective", None: "unlabelled"}
P_VALUE = (
    "A p-value of 0.01 means that about one good part in a hundred scores this high or higher; it is not the "
    "probability that the part is good."
)


def render(report: ReportData, path: str | Path) -> None:
    """Write the report, whole or not at all."""
    items = sorted(report.items, key=lambda item: -item.score)
    scores, labels = _labelled(items)
    ranking = rank(scores, labels) if len(set(labels)) == 2 else None
    page = html.parts(
        "report/report.html",
        scripts=("report/gallery.js", "report/script.js"),
        title=report.title,
        subtitle=report.subtitle,
        symbols=SYMBOLS,
        counts=_counts(items),
        sentences=_sentences(report, items),
        confusion=_confusion(items),
        histogram=_histogram(report.limits, [(item.label, item.score) for item in items]),
        kinds=_kinds(items, report.limits),
        guarantee=report.guarantee,
        caveats=report.caveats,
        notes=report.notes,
        warnings=report.warnings,
        p_value=P_VALUE,
        cards=[*_cards(report, items, ranking), *report.cards],
        curves=_curves(ranking, report.pixel),
        model_card=report.model_card,
        items=[_entry(item, name, report.limits) for item, name in zip(items, _names(items), strict=True)],
        chunk=CHUNK,
        views=[view for view in VIEWS if any(view in item.thumbnails for item in items)],
        blocks=_blocks(items),
    )
    write_atomically(Path(path), map(utf8, page))


def render_results(
    title: str,
    subtitle: str,
    rows: Sequence[Mapping[str, Any]],
    calibration: Calibration,
    path: Path,
    warnings: Sequence[str] = (),
) -> None:
    """Write the page of a folder of results, whole or not at all.

    `rows` are those of results.jsonl; the page shows the overlays that they name, which lie beside it, at full size.
    `warnings` say what makes the verdicts less sure.
    """
    limits = calibration.limits
    rows = sorted(rows, key=lambda row: -row["score"])
    items = [
        {
            "name": row["file"],
            "kind": "",
            "score": row["score"],
            "p": row["p_value"],
            "verdict": row["verdict"],
            "words": words(row["score"], limits.reject),
            "regions": row["regions"],
            "file": quote(os.fsencode(Path(row["overlay"]).as_posix())),
        }
        for row in rows
    ]
    page = html.parts(
        "report/results.html",
        scripts=("report/gallery.js", "report/script.js"),
        # A page opened from the disk has no origin of its own, so that 'self' alone would refuse its images.
        sources="'self' file:",
        title=title,
        subtitle=subtitle,
        symbols=SYMBOLS,
        counts={verdict: sum(row["verdict"] == verdict for row in rows) for verdict in Verdict},
        histogram=_histogram(limits, [(None, row["score"]) for row in rows]),
        guarantee=calibration.promise,
        warnings=warnings,
        items=items,
    )
    write_atomically(path, map(utf8, page))


def _blocks(items: Sequence[Item]) -> Iterator[list[dict[str, str]]]:
    """The thumbnails of the items, one block after the other."""
    for start in range(0, len(items), CHUNK):
        yield [dict(item.thumbnails) for item in items[start : start + CHUNK]]


def _labelled(items: Sequence[Item]) -> tuple[list[float], list[int]]:
    known = [(item.score, item.label) for item in items if item.label is not None]
    return [score for score, _ in known], [label for _, label in known]


def _counts(items: Iterable[Item]) -> dict[Verdict, int]:
    found = Counter(item.verdict for item in items)
    return {verdict: found[verdict] for verdict in Verdict}


def _error(item: Item, limits: Limits | None) -> float:
    """How wrong the verdict is: 2 and more for a mistake, 1 and more for a review, and the more the further the score
    lies on the wrong side of the reject limit."""
    if item.label is None or limits is None:
        return 0.0
    stage = 2 if mistake(item.label, item.verdict) else int(item.verdict is Verdict.REVIEW)
    # A defect should score above the limit, a good part below it.
    below, above = (limits.reject, item.score) if item.label == 0 else (item.score, limits.reject)
    return stage + (max(0.0, 1 - below / above) if above > 0 else 0.0)


def _entry(item: Item, name: str, limits: Limits | None) -> dict[str, object]:
    """What the gallery knows of an image; its thumbnails follow in a block."""
    return {
        "name": name,
        "kind": item.kind,
        "score": item.score,
        "p": item.p_value,
        "verdict": item.verdict,
        "words": words(item.score, limits.reject) if limits else "",
        "mistake": mistake(item.label, item.verdict),
        "error": _error(item, limits),
        "size": item.size,
        "regions": [asdict(region) for region in item.regions],
    }


def _names(items: Sequence[Item]) -> list[str]:
    """The items' names without the folders that all of them share, which tell nothing apart."""
    names = [item.name for item in items]
    try:
        shared = os.path.commonpath([os.path.dirname(name) for name in names])
    except ValueError:  # none, some absolute and some not, or on several drives
        return names
    return [name[len(shared) :].lstrip(os.sep) if shared else name for name in names]


def _sentences(report: ReportData, items: Sequence[Item]) -> list[str]:
    """What the verdicts mean, in words."""
    good, bad = (_counts(item for item in items if item.label == label) for label in (0, 1))
    told = []
    if report.false_rejects is not None:
        told.append(f"Of 1,000 good parts about {1000 * report.false_rejects:.0f} are rejected.")
    if sum(good.values()):
        rejected = good[Verdict.NG]
        are = "is" if rejected == 1 else "are"
        told.append(f"Of the {sum(good.values()):,} good parts here {rejected:,} {are} rejected.")
    if sum(bad.values()):
        passed = bad[Verdict.OK]
        told.append(
            f"Of your {sum(bad.values()):,} defects {passed:,} {'passes' if passed == 1 else 'pass'} "
            f"({bad[Verdict.REVIEW]:,} to review, {bad[Verdict.NG]:,} rejected)."
        )
    return told


def _confusion(items: Sequence[Item]) -> list[dict[str, object]]:
    """One row for the good parts and one for the defects, where there are any: how many have each verdict."""
    rows: list[dict[str, object]] = []
    for label, name, wrong in ((1, "Defects", Verdict.OK), (0, "Good parts", Verdict.NG)):
        counts = _counts(item for item in items if item.label == label)
        if sum(counts.values()):
            rows.append({"name": name, "counts": counts, "wrong": wrong})
    return rows


def _histogram(limits: Limits | None, scored: Sequence[tuple[int | None, float]]) -> Markup:
    """Scores by label, as multiples of the reject limit where there is one; empty without scores."""
    if not scored:
        return Markup("")
    unit = limits.reject if limits and limits.reject > 0 else 1.0
    groups = {name: [score / unit for label, score in scored if label == known] for known, name in LABELS.items()}
    if limits is None or limits.reject <= 0:
        return charts.histogram(groups, {})
    thresholds = {"review": limits.review / unit, "reject": 1.0}
    return charts.histogram(groups, thresholds, "score as a multiple of the reject limit")


def _kinds(items: Sequence[Item], limits: Limits | None) -> list[dict[str, Any]]:
    """One row a kind: how many, how high they score, their verdicts, and how they rank against all good images.

    The kind that ranks worst comes first.
    """
    good = [item.score for item in items if item.label == 0]
    unit = limits.reject if limits and limits.reject > 0 else 1.0
    rows: list[tuple[float, dict[str, Any]]] = []
    for kind in sorted({item.kind for item in items}):
        members = [item for item in items if item.kind == kind]
        bad = [item.score for item in members if item.label == 1]
        area = auroc([*good, *bad], [0] * len(good) + [1] * len(bad))
        row = {
            "name": kind,
            "images": len(members),
            "median": f"{np.median([item.score for item in members]) / unit:.2f}",
            "counts": _counts(members),
            "auroc": "" if np.isnan(area) else f"{area:.3f}",
        }
        rows.append((-1.0 if np.isnan(area) else area, row))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def _cards(report: ReportData, items: Sequence[Item], ranking: Ranking | None) -> list[Card]:
    """The statistics, each with a sentence that says what it means."""
    cards: list[Card] = []
    if ranking is not None:
        low, high = auroc_interval(*_labelled(items))
        better = "How often a defect scores higher than a good part: 0.5 is chance, 1 is always."
        interval = f"With 95 % confidence between {low:.3f} and {high:.3f}."
        cards.append(Card("Image AUROC", f"{ranking.auroc():.3f}", f"{better} {interval}"))
        precise = "The mean share of defects among the images above a threshold, over all thresholds."
        cards.append(Card("Image average precision", f"{ranking.average_precision():.3f}", precise))
        best, threshold = ranking.best_f1()
        balance = (
            f"The best balance of found defects and false alarms, at score {threshold:.3g}, chosen on these images."
        )
        cards.append(Card("Best image F1", f"{best:.3f}", balance))
    if report.pixel is not None:
        pixel = "How often a pixel of a defect is hotter than a good pixel, over all pixels of all images."
        cards.append(Card("Pixel AUROC", f"{report.pixel.auroc():.3f}", pixel))
    return cards


def _curves(image: Ranking | None, pixel: Ranking | None) -> list[Markup]:
    both = {"images": image, "pixels": pixel}
    known = {name: ranking for name, ranking in both.items() if ranking is not None and ranking.auroc() >= 0}
    if not known:
        return []
    roc = {f"{name}, area {r.auroc():.3f}": r.roc_curve() for name, r in known.items()}
    pr = {f"{name}, average {r.average_precision():.3f}": r.pr_curve() for name, r in known.items()}
    return [
        charts.figure("ROC", charts.curves(roc, "false positive rate", "true positive rate", diagonal=True)),
        charts.figure("Precision and recall", charts.curves(pr, "recall", "precision", diagonal=False)),
    ]
