"""A folder of results as a PDF to be signed off: what was judged, by which model, with what result, and who says so."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from fpdf import FPDF
from fpdf.enums import WrapMode, XPos, YPos
from PIL import Image

import fcdd
from fcdd import images
from fcdd.detector.calibration import Verdict
from fcdd.detector.judge import Judge
from fcdd.files import write_atomically
from fcdd.reading import digest
from fcdd.report.drawing import TONES, words

NAME = "report.pdf"
MARGIN, WIDTH, BOTTOM = 15, 180, 277  # millimetres of an A4 page
ROW, SHOWN = 27, 24  # height of an image's row, and the longest side of its thumbnail
PIXELS = 320  # longest side of a thumbnail, about 340 dots an inch
SIGNATURE = 42  # height of the place for name, date and signature
LONGEST = 150  # letters of a name; what is longer is cut at its front, because the end tells images apart
REGIONS = 3  # that are listed one by one
ORDER = (Verdict.NG, Verdict.REVIEW, Verdict.OK)
SOFT, RULE = (95, 98, 106), (205, 205, 200)


class _Sheet(FPDF):
    """A4 pages with the model's fingerprint and the page's number at their foot."""

    def __init__(self, foot: str) -> None:
        super().__init__(format="A4")
        self.foot = foot
        self.set_margins(MARGIN, MARGIN)
        self.set_auto_page_break(False)
        self.c_margin = 0  # texts begin where lines and images begin

    def footer(self) -> None:
        self.set_y(-12)
        self.set_font("helvetica", size=7.5)
        self.set_text_color(*SOFT)
        self.cell(WIDTH - 30, 5, self.foot)
        self.cell(30, 5, f"Page {self.page_no()} of {{nb}}", align="R")
        self.set_text_color(0)

    def room(self, height: float) -> None:
        """Begin a new page where fewer than `height` millimetres are left on this one."""
        if self.get_y() + height > BOTTOM:
            self.add_page()

    def text_block(self, text: str, size: float, line: float, bold: bool = False) -> None:
        self.set_font("helvetica", "B" if bold else "", size)
        self.multi_cell(WIDTH, line, _latin(text), align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)


def write(
    folder: Path,
    model: Path,
    detector: Judge,
    source: Path,
    rows: Sequence[Mapping[str, Any]],
    remarks: Sequence[str] = (),
) -> Path:
    """Write report.pdf into the `folder` of results: NG first, then REVIEW, then OK, each by descending score.

    `rows` are those of results.jsonl; their files lie below `source`, or are `source` itself, and their overlays in
    `folder`. `remarks` are whatever else the reader must know, such as a change of light.
    """
    fingerprint = digest(model)
    sheet = _Sheet(f"{_latin(_short(model.name, 60))}, SHA-256 {fingerprint[:16]}")
    sheet.set_title("Inspection report")
    sheet.set_creator(f"fcdd {fcdd.__version__}")
    sheet.add_page()
    sheet.text_block("Inspection report", 20, 9, bold=True)
    sheet.ln(3)
    for name, value in _facts(model, fingerprint, detector, source, rows).items():
        _fact(sheet, name, value)
    _counts(sheet, rows)
    for remark in remarks:
        sheet.text_block(f"Note: {remark}", 9, 4.5, bold=True)
    sheet.ln(2)
    root = source if source.is_dir() else source.parent
    limit = detector.calibration.limits.reject
    for row in sorted(rows, key=lambda row: (ORDER.index(row["verdict"]), -row["score"])):
        sheet.room(ROW)
        _row(sheet, row, limit, _thumbnail(root / row["file"], folder / row["overlay"]))
    _signature(sheet)
    write_atomically(folder / NAME, bytes(sheet.output()))
    return folder / NAME


def _facts(
    model: Path, fingerprint: str, detector: Judge, source: Path, rows: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    limits, card = detector.calibration.limits, detector.card
    trained = f"{card['good']:,} good images and {card['defects']:,} labelled defects"
    made = f"fcdd {card['versions']['fcdd']}, " if "fcdd" in card["versions"] else ""
    return {
        "Date and time": datetime.now().astimezone().isoformat(" ", "seconds"),
        "Judged": f"{len(rows):,} {'image' if len(rows) == 1 else 'images'} of {source.resolve()}",
        "Judged by": f"fcdd {fcdd.__version__}",
        "Model": model.name,
        "Fingerprint": f"SHA-256 {fingerprint}",
        "Made from": f"{made}{trained}; fingerprint of the good images {card['fingerprint'][:16] or 'unknown'}",
        "Limits": f"NG above a score of {limits.reject:.4g}, REVIEW above {limits.review:.4g}",
        "What they promise": detector.calibration.promise,
    }


def _fact(sheet: _Sheet, name: str, value: str) -> None:
    top = sheet.get_y()
    sheet.set_font("helvetica", size=9)
    sheet.set_text_color(*SOFT)
    sheet.cell(36, 5, name)
    sheet.set_text_color(0)
    sheet.multi_cell(WIDTH - 36, 5, _latin(value), align="L", wrapmode=WrapMode.WORD, new_x=XPos.LMARGIN)
    sheet.set_y(max(sheet.get_y(), top + 5) + 0.8)


def _counts(sheet: _Sheet, rows: Sequence[Mapping[str, Any]]) -> None:
    """The number of images of each verdict, in its colour."""
    sheet.ln(3)
    for verdict in ORDER:
        count = sum(row["verdict"] == verdict for row in rows)
        sheet.set_font("helvetica", "B", 15)
        sheet.set_text_color(*TONES[verdict])
        sheet.cell(WIDTH / len(ORDER), 9, f"{count:,} {verdict}")
    sheet.set_text_color(0)
    sheet.ln(11)


def _row(sheet: _Sheet, row: Mapping[str, Any], limit: float, picture: Image.Image) -> None:
    """One image: its thumbnail, its name, its verdict, its score and its regions."""
    top, verdict = sheet.get_y(), Verdict(row["verdict"])
    sheet.set_draw_color(*RULE)
    sheet.line(MARGIN, top, MARGIN + WIDTH, top)
    scale = SHOWN / max(picture.size)
    sheet.image(_jpeg(picture), MARGIN, top + 1.5, picture.width * scale, picture.height * scale)
    left = MARGIN + SHOWN + 5
    sheet.set_xy(left, top + 2.5)
    sheet.set_font("helvetica", "B", 9)
    name = _latin(_short(row["file"], LONGEST))
    sheet.multi_cell(78, 4.3, name, align="L", wrapmode=WrapMode.CHAR)
    sheet.set_xy(left + 82, top + 2.5)
    sheet.set_text_color(*TONES[verdict])
    sheet.cell(20, 4.3, str(verdict))
    sheet.set_text_color(0)
    sheet.set_font("helvetica", size=9)
    sheet.cell(50, 4.3, _latin(words(row["score"], limit)))
    sheet.set_xy(left + 82, top + 8)
    sheet.set_font("helvetica", size=8)
    sheet.multi_cell(WIDTH - SHOWN - 5 - 82, 4, _latin(_regions(row["regions"])), align="L")
    sheet.set_xy(MARGIN, top + ROW)


def _regions(regions: Sequence[Mapping[str, Any]]) -> str:
    """Where the heat lies, strongest region first, in pixels from the image's upper left corner."""
    if not regions:
        return "no region"
    told = [f"at {r['x']}, {r['y']}: {r['width']} × {r['height']} px" for r in regions[:REGIONS]]
    left = len(regions) - len(told)
    return "\n".join(told) + (f"\nand {left} more" if left else "")


def _signature(sheet: _Sheet) -> None:
    """A place for whoever answers for the result."""
    sheet.room(SIGNATURE)
    top = sheet.get_y()
    sheet.line(MARGIN, top, MARGIN + WIDTH, top)
    sheet.set_xy(MARGIN, top + 5)
    sheet.text_block("Checked and released by", 10, 5, bold=True)
    sheet.set_draw_color(0)
    line = top + 32
    sheet.set_font("helvetica", size=8)
    sheet.set_text_color(*SOFT)
    for number, name in enumerate(("Name", "Date", "Signature")):
        left = MARGIN + number * WIDTH / 3
        sheet.line(left, line, left + WIDTH / 3 - 6, line)
        sheet.text(left, line + 4, name)
    sheet.set_text_color(0)


def _thumbnail(source: Path, overlay: Path) -> Image.Image:
    """The overlay without the strip below it, which could not be read when small."""
    height, width = images.size(source)
    with Image.open(overlay) as drawn:
        shown = drawn.convert("RGB").crop((0, 0, width, height))
    shown.thumbnail((PIXELS, PIXELS))
    return shown


def _jpeg(picture: Image.Image) -> io.BytesIO:
    content = io.BytesIO()
    picture.save(content, "JPEG", quality=80)
    content.seek(0)
    return content


def _short(name: str, most: int) -> str:
    return name if len(name) <= most else f"...{name[3 - most :]}"


def _latin(text: str) -> str:
    """The text in the letters of the fonts that every PDF reader has; others stay known by their number (\\u4e2d)."""
    plain = text.replace("–", "-").replace("…", "...").replace("≤", "<=").replace("\u2009", " ")
    return plain.encode("latin-1", "backslashreplace").decode("latin-1")
