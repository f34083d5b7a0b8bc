"""Tables as CSV, in which no text is a formula: a drive's firmware chooses its serial number."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence

from pytest_ssdqual.qual import safe_text

#: Characters of a cell of a CSV file, as of a workbook: the serial numbers of a whole rack are one cell.
CELL_CHARACTERS = 32_000
#: Characters that begin a formula in spreadsheets, also after blanks and as full-width characters.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def csv_text(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return CSV as in RFC 4180 with line feeds; no cell is a formula to a spreadsheet."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([_cell(each) for each in line] for line in lines)
    return out.getvalue()


def csv_of_records(columns: Sequence[str], records: Iterable[Mapping[str, object]]) -> str:
    """Return a row for each record."""
    return csv_text(columns, ([record[name] for name in columns] for record in records))


def _cell(value: object) -> str:
    """Return a number as it is; text that a spreadsheet would evaluate gets an apostrophe."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value) if math.isfinite(value) else ""
    if value is None:
        return ""
    text = " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    text = safe_text.line(text, CELL_CHARACTERS)
    return f"'{text}" if text.lstrip(" '\"").startswith(FORMULA) else text
