"""An audit → one self-contained HTML page that explains itself. Every text is escaped; nothing is fetched."""

from __future__ import annotations

from pathlib import Path

from fcdd.report import html

from .findings import Audit, Question, Severity

STYLE = "audit/style.css"
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
        "Does the same thing at the same place make images anomalous?",
        "What the scores of anomalous images rest on is compared between them. Real defects resemble others of their "
        "type, but each lies where it lies; what is printed over images repeats at its place. Whatever repeats so, "
        "and in no good image, is put into good images and taken out of the others, to see whether it alone moves "
        "the score.",
    ),
    Question.PLANTED: (
        "What does a mark alone do?",
        "A watermark, a time stamp and a sticker are put into good images at several places. A detector should find "
        "foreign things; the question is how far a mark alone carries a good part, and whether the heat goes there.",
    ),
    Question.HEAT: (
        "Where is the heat?",
        "Mean heat over all images and over each type, the share of the score in border, corners and background, and "
        "places that are warm whatever the images show there.",
    ),
    Question.STRATEGIES: (
        "In which ways do images score high?",
        "Heatmaps of similar shape are put into groups (spectral clustering). A small group with heat at one spot and "
        "of one label is where a shortcut would show.",
    ),
    Question.METADATA: (
        "Does the file or the light give the label away?",
        "Brightness, sharpness, file and image size, compression, camera and date: each tries to predict the label, "
        "and a high score among good images, on images held out from its own fitting. AUROC 0.5 is chance, 1 is "
        "certainty.",
    ),
    Question.FAITHFULNESS: (
        "Is the heat the reason for the score?",
        "The hottest cells are replaced by those of a good image, a few at a time: the score should fall at once. "
        "Put into a good image, they should raise it. Cells at random, and the hottest cells of a network of the "
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
    return html.page(
        "audit/audit.html",
        styles=[STYLE],
        title=f"Audit of {Path(result.model).name}",
        subtitle=f"{result.parts}: {kinds}; {result.seconds:.0f} s",
        worst=result.findings[0].severity if result.findings else Severity.NONE,
        numbered=list(enumerate(result.findings)),
        questions=ASKED,
        labels=LABELS,
        verdicts=VERDICTS,
    )
