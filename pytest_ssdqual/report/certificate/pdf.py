"""The certificate as a PDF of one page, drawn with fpdf2; its font is the DejaVu Sans of matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.certificate.certificate import Certificate
from pytest_ssdqual.report.run_folder import safe_files

if TYPE_CHECKING:
    from fpdf import FPDF

FONT = "DejaVu"
MISSING = "a certificate needs fpdf2: pip install 'pytest-ssdqual[certificate]'"
#: mm. A4 with these margins has 174 × 265 mm.
MARGIN, LINE, NAME_WIDTH = 18, 4.2, 24
#: Rows and characters that fit onto one page together; what is left out is counted.
MOST_CLAIMS, MOST_REASONS, MOST_CHARGES, MOST_RATES = 16, 6, 6, 4
MOST_CHARACTERS, MOST_SERIALS = 400, 2_000
#: Red, green, blue.
GOOD, BAD, OPEN, SOFT = (11, 107, 67), (163, 0, 29), (122, 75, 0), (75, 85, 99)


class NoLibrary(ValueError):
    """fpdf2 is not installed; the message says how to install it."""


def write(content: Certificate, path: Path) -> None:
    """Write the page; ``NoLibrary`` without fpdf2, ``OSError`` if the file cannot be written."""
    safe_files.write_whole(path, document(content))


def document(content: Certificate) -> bytes:
    """Return the PDF; ``NoLibrary`` without fpdf2."""
    try:
        from fpdf import FPDF
    except ImportError as error:
        raise NoLibrary(MISSING) from error
    sheet = _Sheet(FPDF(format="A4"))
    sheet.head(content)
    sheet.fields(content.fields)
    sheet.drives(content)
    sheet.claims(content)
    sheet.table(content.facts)
    for each in content.error_rates[:MOST_RATES]:
        sheet.words(f"{each}.", 7, SOFT)
    sheet.signature()
    return bytes(sheet.pdf.output())


class _Sheet:
    """An A4 page and what it is drawn with."""

    def __init__(self, pdf: FPDF) -> None:
        import matplotlib as mpl
        from matplotlib.ft2font import FT2Font

        self.pdf = pdf
        fonts = Path(mpl.get_data_path()) / "fonts" / "ttf"
        pdf.add_font(FONT, "", fonts / "DejaVuSans.ttf")
        pdf.add_font(FONT, "B", fonts / "DejaVuSans-Bold.ttf")
        self._known = frozenset(FT2Font(str(fonts / "DejaVuSans-Bold.ttf")).get_charmap())
        pdf.set_margin(MARGIN)
        pdf.set_auto_page_break(auto=True, margin=MARGIN)
        pdf.add_page()

    def text(self, text: str, most: int = MOST_CHARACTERS) -> str:
        """Return a text of printable characters that the font has; others are written as their numbers."""
        line = safe_text.line(text, most)
        return "".join(each if ord(each) in self._known else f"\\u{ord(each):04x}" for each in line)

    def words(
        self,
        text: str,
        size: float = 8,
        colour: Sequence[int] = (0, 0, 0),
        style: str = "",
        most: int = MOST_CHARACTERS,
    ) -> None:
        """Write a paragraph over the whole width."""
        self.pdf.set_font(FONT, style, size)
        self.pdf.set_text_color(*colour)
        self.pdf.multi_cell(0, size * 0.5, self.text(text, most), align="L", new_x="LMARGIN", new_y="NEXT")

    def head(self, content: Certificate) -> None:
        colour = BAD if content.is_rejected else OPEN if content.reasons else GOOD
        self.words(content.title, 17, style="B")
        self.words(content.verdict, 14, colour, "B")
        self.words(content.sentence, 10)
        for each in content.reasons[:MOST_REASONS]:
            self.words(f"! {each}", 8, OPEN, "B")
        self._left_out(len(content.reasons) - MOST_REASONS, "reasons")
        for each in content.remarks:
            self.words(each, 8, OPEN)
        self.pdf.ln(2)

    def fields(self, fields: Sequence[tuple[str, str]]) -> None:
        """Write name and value in a row; a missing value is a line to write on."""
        width = self.pdf.epw / len(fields)
        top = self.pdf.get_y()
        for number, (name, value) in enumerate(fields):
            left = self.pdf.l_margin + number * width
            self.pdf.set_xy(left, top)
            self.pdf.set_font(FONT, "", 7)
            self.pdf.set_text_color(*SOFT)
            self.pdf.cell(width, 4, name)
            self.pdf.set_xy(left, top + 4)
            self.pdf.set_font(FONT, "", 9)
            self.pdf.set_text_color(0)
            self.pdf.cell(width - 4, 5, self.text(value, 28))
            self.pdf.line(left, top + 9.5, left + width - 4, top + 9.5)
        self.pdf.set_xy(self.pdf.l_margin, top + 13)

    def drives(self, content: Certificate) -> None:
        self.heading(f"Drives: {sum(len(each.serials) for each in content.drives):,}")
        for each in content.drives:
            self.words(f"{each.model}, firmware {each.firmware}, {each.capacity}", 8, style="B")
            self.words(", ".join(each.serials), 7.5, most=MOST_SERIALS)
        for charge in content.charges[:MOST_CHARGES]:
            self.words(f"✗ {charge}", 8, BAD, "B")
        self._left_out(len(content.charges) - MOST_CHARGES, "drives with remarks")

    def claims(self, content: Certificate) -> None:
        self.heading(f"Claims: {len(content.claims):,}")
        widths = [0.5 * self.pdf.epw, 0.12 * self.pdf.epw, 0.2 * self.pdf.epw, 0.18 * self.pdf.epw]
        self._row(("Claim", "Promises", "Least margin", "Outcome"), widths, SOFT)
        for each in content.claims[:MOST_CLAIMS]:
            colour = {"passed": GOOD, "failed": BAD}.get(each.outcome, OPEN)
            self._row((each.claim, f"{each.promises:,}", each.least_margin, each.outcome), widths, colour)
        self._left_out(len(content.claims) - MOST_CLAIMS, "claims")

    def _row(self, cells: Sequence[str], widths: Sequence[float], colour: Sequence[int]) -> None:
        for number, (cell, width) in enumerate(zip(cells, widths, strict=True)):
            is_last = number == len(cells) - 1
            self.pdf.set_font(FONT, "B" if is_last else "", 7.5)
            self.pdf.set_text_color(*(colour if is_last else (0, 0, 0)))
            self.pdf.cell(width, LINE, self.text(cell, 60), border="B", align="R" if number in (1, 2) else "L")
        self.pdf.ln(LINE)

    def table(self, facts: Sequence[tuple[str, str]]) -> None:
        self.heading("Run")
        for name, value in facts:
            self.pdf.set_font(FONT, "", 7.5)
            self.pdf.set_text_color(*SOFT)
            self.pdf.cell(NAME_WIDTH, LINE, name)
            self.pdf.set_text_color(0)
            self.pdf.multi_cell(0, LINE, self.text(value), align="L", new_x="LMARGIN", new_y="NEXT")

    def heading(self, text: str) -> None:
        self.pdf.ln(2)
        self.words(text, 10, style="B")

    def signature(self) -> None:
        """Write lines for date and signature at the bottom."""
        self.pdf.ln(max(10.0, self.pdf.h - MARGIN - 10 - self.pdf.get_y()))
        top, half = self.pdf.get_y(), self.pdf.epw / 2
        self.pdf.set_font(FONT, "", 7)
        self.pdf.set_text_color(*SOFT)
        for number, name in enumerate(("Place and date", "Signature")):
            left = self.pdf.l_margin + number * half
            self.pdf.line(left, top, left + half - 4, top)
            self.pdf.set_xy(left, top + 1)
            self.pdf.cell(half, 4, name)

    def _left_out(self, count: int, what: str) -> None:
        if count > 0:
            self.words(f"and {count:,} more {what}, which the report of the run has", 7.5, SOFT)
