"""ReportData → one self-contained HTML file. Every text from outside is escaped; nothing is fetched from anywhere."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

import numpy as np

from fcdd.detector.calibration import Verdict
from fcdd.files import utf8, write_atomically
from fcdd.metrics import Ranking, auroc, auroc_interval, rank
from fcdd.report import charts
from fcdd.report.content import VIEWS, Card, Item, ReportData

CHUNK = 40  # thumbnails are parsed in blocks of so many items, when the reader gets there
SYMBOLS = {Verdict.OK: "✓", Verdict.REVIEW: "?", Verdict.NG: "✕"}
P_VALUE = (
    "A p-value of 0.01 means that about one good part in a hundred scores this high or higher; it is not the "
    "probability that the part is good."
)


def render(report: ReportData, path: str | Path) -> None:
    """Write the report, whole or not at all."""
    write_atomically(path, map(utf8, _parts(report)))


def _parts(report: ReportData) -> Iterator[str]:
    """The page in order; thumbnails come one block at a time."""
    items = sorted(report.items, key=lambda item: -item.score)
    style, script = _asset("style.css"), _asset("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # Only this very script may run and nothing may be loaded, even if a text slipped through unescaped.
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    scores, labels = _labelled(items)
    ranking = rank(scores, labels) if len(set(labels)) == 2 else None
    page = Template(_asset("template.html")).substitute(
        policy=escape(policy),
        title=escape(report.title),
        subtitle=escape(report.subtitle),
        style=style,
        script=script,
        verdicts=_verdicts(items),
        cards=_cards(report, items, ranking),
        histogram=_histogram(report, items),
        curves=_curves(ranking, report.pixel),
        kinds=_kinds(items),
        guarantee=_paragraphs([report.guarantee] if report.guarantee else []),
        p_value=escape(P_VALUE),
        model_card=_model_card(report),
        limits=_list(report.limits),
        notes=f"<h3>Notes</h3>{_list(report.notes)}" if report.notes else "",
        items=_json([_entry(item, error) for item, error in zip(items, _errors(items), strict=True)]),
        chunk=CHUNK,
        views=" ".join(view for view in VIEWS if any(view in item.thumbnails for item in items)),
        blocks="\0",
    )
    head, tail = page.split("\0")
    yield head
    for start in range(0, len(items), CHUNK):
        thumbnails = _json([dict(item.thumbnails) for item in items[start : start + CHUNK]])
        yield f'<script type="application/json" id="block-{start // CHUNK}">{thumbnails}</script>\n'
    yield tail


def _asset(name: str) -> str:
    return (resources.files("fcdd.report") / name).read_text(encoding="utf-8")


def _json(value: object) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _labelled(items: Sequence[Item]) -> tuple[list[float], list[int]]:
    known = [(item.score, item.label) for item in items if item.label is not None]
    return [score for score, _ in known], [label for _, label in known]


def _errors(items: Sequence[Item]) -> list[float]:
    """How badly each image is ranked, in [0, 1]: the share of the other class it stands on the wrong side of."""
    good = np.sort([item.score for item in items if item.label == 0])
    bad = np.sort([item.score for item in items if item.label == 1])
    errors = []
    for item in items:
        if item.label == 1 and good.size:
            errors.append(1 - float(np.searchsorted(good, item.score, "left")) / good.size)
        elif item.label == 0 and bad.size:
            errors.append(float(np.searchsorted(bad, item.score, "right")) / bad.size)
        else:
            errors.append(0.0)
    return errors


def _entry(item: Item, error: float) -> dict[str, object]:
    """What the gallery knows of an image; its thumbnails follow in a block."""
    return {
        "name": item.name,
        "kind": item.kind,
        "label": item.label,
        "score": item.score,
        "p": item.p_value,
        "verdict": item.verdict,
        "error": error,
        "size": item.size,
        "regions": [asdict(region) for region in item.regions],
    }


def _verdicts(items: Sequence[Item]) -> str:
    """A bar split by verdict, and the counts."""
    counts = Counter(item.verdict for item in items if item.verdict is not None)
    total = sum(counts.values())
    if not total:
        return f'<p class="total">{len(items)} images</p>'
    bar = "".join(f'<i class="{v.lower()}" style="flex-grow:{counts[v]}"></i>' for v in Verdict if counts[v])
    legend = "".join(
        f'<li class="{v.lower()}"><span class="symbol">{SYMBOLS[v]}</span><b>{counts[v]:,}</b>'
        f"<span>{v} · {100 * counts[v] / total:.1f} %</span></li>"
        for v in Verdict
    )
    return f'<div class="split">{bar}</div><ul class="counts">{legend}</ul>'


def _cards(report: ReportData, items: Sequence[Item], ranking: Ranking | None) -> str:
    cards: list[Card] = []
    if ranking is not None:
        low, high = auroc_interval(*_labelled(items))
        cards.append(Card("Image AUROC", f"{ranking.auroc():.3f}", f"95 % interval {low:.3f} – {high:.3f}"))
        cards.append(Card("Image average precision", f"{ranking.average_precision():.3f}"))
        best, threshold = ranking.best_f1()
        cards.append(Card("Best image F1", f"{best:.3f}", f"at score {threshold:.3g}, chosen on these images"))
    if report.pixel is not None:
        cards.append(Card("Pixel AUROC", f"{report.pixel.auroc():.3f}", "pooled over all pixels"))
    good = [item for item in items if item.label == 0 and item.verdict is not None]
    bad = [item for item in items if item.label == 1 and item.verdict is not None]
    if good:
        rejected = sum(item.verdict is Verdict.NG for item in good)
        cards.append(Card("Good parts rejected", f"{100 * rejected / len(good):.1f} %", f"{rejected} of {len(good)}"))
    if bad:
        missed = sum(item.verdict is Verdict.OK for item in bad)
        cards.append(Card("Defects passed as OK", f"{100 * missed / len(bad):.1f} %", f"{missed} of {len(bad)}"))
    return "".join(
        f"<div><dt>{escape(card.name)}</dt><dd>{escape(card.value)}</dd><p>{escape(card.note)}</p></div>"
        for card in (*cards, *report.cards)
    )


def _histogram(report: ReportData, items: Sequence[Item]) -> str:
    names = {0: "good", 1: "defective", None: "unlabelled"}
    groups = {name: [item.score for item in items if item.label == label] for label, name in names.items()}
    return charts.histogram(groups, report.thresholds) if items else ""


def _curves(image: Ranking | None, pixel: Ranking | None) -> str:
    both = {"images": image, "pixels": pixel}
    known = {name: ranking for name, ranking in both.items() if ranking is not None and ranking.auroc() >= 0}
    if not known:
        return ""
    roc = {f"{name}, area {r.auroc():.3f}": r.roc_curve() for name, r in known.items()}
    pr = {f"{name}, average {r.average_precision():.3f}": r.pr_curve() for name, r in known.items()}
    return (
        f"<figure><h3>ROC</h3>{charts.curves(roc, 'false positive rate', 'true positive rate', diagonal=True)}</figure>"
        f"<figure><h3>Precision and recall</h3>{charts.curves(pr, 'recall', 'precision', diagonal=False)}</figure>"
    )


def _kinds(items: Sequence[Item]) -> str:
    """One row a kind: how many, how they rank against all good images, and their verdicts. Hardest first."""
    good = [item.score for item in items if item.label == 0]
    rows = []
    for kind in sorted({item.kind for item in items}):
        members = [item for item in items if item.kind == kind]
        bad = [item.score for item in members if item.label == 1]
        area = auroc([*good, *bad], [0] * len(good) + [1] * len(bad))
        verdicts = Counter(item.verdict for item in members)
        counts = "".join(f'<td class="number">{verdicts[verdict] or "–"}</td>' for verdict in Verdict)
        row = (
            f'<tr><th>{escape(kind).replace("_", "_<wbr>") or "–"}</th><td class="number">{len(members)}</td>'
            f'<td class="number">{"–" if np.isnan(area) else f"{area:.3f}"}</td>'
            f'<td class="number median">{np.median([item.score for item in members]):.3g}</td>{counts}</tr>'
        )
        rows.append((-1.0 if np.isnan(area) else area, row))
    return "".join(row for _, row in sorted(rows, key=lambda pair: pair[0]))


def _model_card(report: ReportData) -> str:
    return "".join(
        f"<section><h3>{escape(section)}</h3><dl>"
        + "".join(f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in entries.items())
        + "</dl></section>"
        for section, entries in report.model_card.items()
    )


def _paragraphs(texts: Sequence[str]) -> str:
    return "".join(f"<p>{escape(text).replace(' %', '&nbsp;%')}</p>" for text in texts)


def _list(texts: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"
