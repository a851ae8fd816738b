"""An audit → one self-contained HTML page that explains itself. Every text is escaped; nothing is fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

from .findings import Audit, Finding, Question, Severity

LABELS = {
    Severity.HIGH: "High",
    Severity.MEDIUM: "Medium",
    Severity.LOW: "Low",
    Severity.UNKNOWN: "Too few to say",
    Severity.NONE: "In order",
}
VERDICTS = {
    Severity.HIGH: "The score rests on something that is not the part",
    Severity.MEDIUM: "Nothing certain, but something to look into",
    Severity.LOW: "Nothing serious",
    Severity.UNKNOWN: "Nothing found, but for some questions there are too few images",
    Severity.NONE: "Nothing found",
}
ASKED = {
    Question.RECURRING: (
        "Does the same thing at the same place make pictures anomalous?",
        "What the scores of anomalous pictures rest on is compared between them. Real defects resemble others of their "
        "type, but each lies where it lies; what is printed over pictures repeats at its place. Whatever repeats so, "
        "and in no good picture, is put into good pictures and taken out of the others, to see whether it alone moves "
        "the score.",
    ),
    Question.PLANTED: (
        "What does a mark alone do?",
        "A watermark, a time stamp and a sticker are put into good pictures at several places. A detector should find "
        "foreign things; the question is how far a mark alone carries a good part, and whether the heat goes there.",
    ),
    Question.HEAT: (
        "Where is the heat?",
        "Mean heat over all pictures and over each type, the share of the score in border, corners and background, and "
        "places that are warm whatever the pictures show there.",
    ),
    Question.STRATEGIES: (
        "In which ways do pictures score high?",
        "Heatmaps of similar shape are put into groups (spectral clustering). A small group with heat at one spot and "
        "of one label is where a shortcut would show.",
    ),
    Question.METADATA: (
        "Does the file or the light give the label away?",
        "Brightness, sharpness, file and picture size, compression, camera and date: each tries to predict the label, "
        "and a high score among good pictures, on pictures held out from its own fitting. AUROC 0.5 is chance, 1 is "
        "certainty.",
    ),
    Question.FAITHFULNESS: (
        "Is the heat the reason for the score?",
        "The hottest cells are replaced by those of a good picture, a few at a time: the score should fall at once. "
        "Put into a good picture, they should raise it. Cells at random, and the hottest cells of a network of the "
        "same shape that was never trained, are the control.",
    ),
    Question.FIELDS: (
        "What does a hot cell really see?",
        "A cell's heat depends on a patch around it, its receptive field. The gradient shows which pixels it "
        "reacted to.",
    ),
}


def page(result: Audit) -> str:
    """The page of an audit."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in result.images.items())
    return fill(
        f"Audit of {Path(result.model).name}",
        f"{result.parts}: {kinds}; {result.seconds:.0f} s",
        _verdict(result),
        "".join(_section(question, result.findings) for question in Question),
    )


def fill(title: str, subtitle: str, verdict: str, sections: str) -> str:
    """The template with its parts, which must be HTML; title and subtitle are plain text."""
    style = (resources.files("fcdd.report") / "style.css").read_text(encoding="utf-8") + _asset("style.css")
    return Template(_asset("template.html")).substitute(
        title=escape(title), subtitle=escape(subtitle), style=style, verdict=verdict, sections=sections
    )


def _asset(name: str) -> str:
    return (resources.files("fcdd.audit") / name).read_text(encoding="utf-8")


def _verdict(result: Audit) -> str:
    """The worst severity in words, and all findings by name."""
    worst = result.findings[0].severity if result.findings else Severity.NONE
    rows = "".join(
        f'<li><span class="tag {finding.severity}">{LABELS[finding.severity]}</span>'
        f'<a href="#finding-{number}">{escape(finding.title)}</a></li>'
        for number, finding in enumerate(result.findings)
    )
    title = f'<p class="total">{VERDICTS[worst]}</p>'
    return f'<section class="panel {worst}">{title}<ul class="summary">{rows}</ul></section>'


def _section(question: Question, findings: Sequence[Finding]) -> str:
    own = [(number, finding) for number, finding in enumerate(findings) if finding.question is question]
    title, asked = ASKED[question]
    told = "".join(_finding(number, finding) for number, finding in own)
    missing = '<p class="asked">There are too few pictures, or none with a label, to ask this.</p>'
    return f'<section><h2>{escape(title)}</h2><p class="asked">{escape(asked)}</p>{told or missing}</section>'


def _finding(number: int, finding: Finding) -> str:
    shots = "".join(
        f'<figure><img src="{escape(image.source)}" alt="{escape(image.caption)}">'
        f"<figcaption>{escape(image.caption)}</figcaption></figure>"
        for image in finding.images
    )
    files = "".join(f"<li>{escape(file)}</li>" for file in finding.files)
    more = _figures(finding.figures) + (f'<ul class="files">{files}</ul>' if files else "")
    return (
        f'<article class="panel finding {finding.severity}" id="finding-{number}">'
        f'<h3><span class="tag">{LABELS[finding.severity]}</span>{escape(finding.title)}</h3>'
        f"<p>{escape(finding.sentence)}</p>"
        + (f'<p class="asked">{escape(finding.power)}</p>' if finding.power else "")
        + (f'<div class="shots">{shots}</div>' if shots else "")
        + (f'<div class="charts">{finding.chart}</div>' if finding.chart else "")
        + f'<p class="todo"><b>What to do:</b> {escape(finding.remedy)}</p>'
        + (f"<details><summary>Numbers and files</summary>{more}</details>" if more else "")
        + "</article>"
    )


def _figures(figures: Mapping[str, float]) -> str:
    rows = "".join(
        f'<tr><th>{escape(name.replace("_", " "))}</th><td class="number">{value:.4g}</td></tr>'
        for name, value in figures.items()
    )
    return f"<table>{rows}</table>" if rows else ""
