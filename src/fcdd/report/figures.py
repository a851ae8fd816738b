"""Figures as image files: the contact sheet."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from fcdd.files import write_atomically
from fcdd.report.content import Array, to_image

INK, PAPER = (30, 30, 34), (255, 255, 255)


def contact_sheet(
    rows: Sequence[Sequence[Array]],
    headings: Sequence[str],
    captions: Sequence[str],
    path: str | Path,
    cell: int = 192,
) -> None:
    """Rows of images with a heading a column and a caption a row, written to `path` (format by its suffix).

    Images are uint8 (H, W, 3), uint8 (H, W) or bool (H, W); each is fitted into a square of `cell` pixels.
    """
    if len(captions) != len(rows) or any(len(row) != len(headings) for row in rows):
        raise ValueError("a contact sheet needs one caption a row and one heading a column")
    gap, size = max(cell // 24, 4), max(cell // 11, 14)
    font = ImageFont.load_default(size)
    # Captions stand to the left, wrapped, as wide as the longest word or two thirds of a cell.
    words = [word for caption in captions for word in caption.split()]
    margin = int(max([font.getlength(word) for word in words] + ([cell * 2 / 3] if words else [0]))) + gap
    top = size + 2 * gap
    sheet = Image.new("RGB", (margin + len(headings) * (cell + gap) + gap, top + len(rows) * (cell + gap)), PAPER)
    draw = ImageDraw.Draw(sheet)
    for column, heading in enumerate(headings):
        centre = margin + gap + column * (cell + gap) + cell / 2
        draw.text((centre, gap), fit(heading, font, cell), INK, font, anchor="ma")
    for line, (row, caption) in enumerate(zip(rows, captions, strict=True)):
        y = top + line * (cell + gap)
        draw.multiline_text((gap, y + cell / 2), _wrap(caption, font, margin - gap), INK, font, anchor="lm")
        for column, array in enumerate(row):
            x = margin + gap + column * (cell + gap)
            image = to_image(array)
            scale = cell / max(image.size)
            image = image.resize((max(round(image.width * scale), 1), max(round(image.height * scale), 1)))
            sheet.paste(image, (x + (cell - image.width) // 2, y + (cell - image.height) // 2))
    content = io.BytesIO()
    sheet.save(content, Image.registered_extensions()[Path(path).suffix.lower()])
    write_atomically(path, content.getvalue())


def fit(text: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, width: float) -> str:
    """The text, cut with an ellipsis where it is wider than `width` pixels."""
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(text + "…") > width:
        text = text[:-1]
    return text + "…"


def _wrap(text: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, width: float) -> str:
    """Line breaks between words so that no line is wider than `width` pixels; own line breaks stay."""
    lines: list[str] = []
    for paragraph in text.splitlines():
        lines.append("")
        for word in paragraph.split():
            longer = f"{lines[-1]} {word}".strip()
            if font.getlength(longer) <= width or not lines[-1]:
                lines[-1] = longer
            else:
                lines.append(word)
    return "\n".join(lines)
