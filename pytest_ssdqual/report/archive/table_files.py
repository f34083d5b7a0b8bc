"""Writes the table of figures as CSV, as a workbook (XlsxWriter) or as Parquet (DuckDB); both libraries are extras.

A name in it may begin like a formula, because a drive's firmware chooses its serial number. In CSV such a text begins
with an apostrophe; in a workbook it is a cell of type string, which no spreadsheet evaluates.
"""

from __future__ import annotations

import csv
import io
import json
import math
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple
from datetime import datetime
from pathlib import Path
from typing import Any, get_type_hints

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.archive.figure_table import COLUMNS, FigureRow

#: Rows of a worksheet below its head.
MOST_SHEET_ROWS = 1_048_575
#: Characters of a cell of a CSV file, as of a workbook: the serial numbers of a whole rack are one cell.
CELL_CHARACTERS = 32_000
#: Characters that begin a formula in spreadsheets, also after blanks and as full-width characters.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
#: Types of DuckDB by those of the fields, of which None is also allowed.
SQL_TYPES = {"str": "VARCHAR", "float": "DOUBLE", "int": "BIGINT", "bool": "BOOLEAN", "datetime": "TIMESTAMPTZ"}


class NotWritable(ValueError):
    """The table cannot be written in this form; the message says why, and what to do."""


def write_csv(path: Path, rows: Iterable[FigureRow]) -> None:
    """Write UTF-8 with line feeds, as RFC 4180 has it."""
    text = csv_text(COLUMNS, (tuple(map(_plain, astuple(row))) for row in rows))
    path.write_text(text, encoding="utf-8", newline="\n")


def write_xlsx(path: Path, rows: Iterable[FigureRow]) -> None:
    """Write a workbook with one worksheet, its head frozen and filtered; ``NotWritable`` without XlsxWriter."""
    try:
        import xlsxwriter
    except ImportError as error:
        raise NotWritable("--xlsx needs XlsxWriter: pip install 'pytest-ssdqual[xlsx]'") from error
    if len(found := list(rows)) > MOST_SHEET_ROWS:
        raise NotWritable(f"{len(found):,} figures do not fit into a worksheet: write --csv or --parquet")
    with xlsxwriter.Workbook(path, {"constant_memory": True}) as book:
        sheet, head = book.add_worksheet("figures"), book.add_format({"bold": True})
        sheet.freeze_panes(1, 0)
        sheet.autofilter(0, 0, len(found), len(COLUMNS) - 1)
        for column, name in enumerate(COLUMNS):
            sheet.write_string(0, column, name, head)
        for number, row in enumerate(found, start=1):
            for column, value in enumerate(map(_plain, astuple(row))):
                _write_cell(sheet, number, column, value)


def _write_cell(sheet: Any, row: int, column: int, value: str | float | bool | None) -> None:  # noqa: ANN401
    if isinstance(value, bool):
        sheet.write_boolean(row, column, value)
    elif isinstance(value, str):
        if value:
            sheet.write_string(row, column, safe_text.line(value, CELL_CHARACTERS))
    elif value is not None:
        sheet.write_number(row, column, value)


def write_parquet(path: Path, rows: Iterable[FigureRow]) -> None:
    """Write Parquet with a type for each column; ``NotWritable`` without DuckDB."""
    try:
        import duckdb
    except ImportError as error:
        raise NotWritable("--parquet needs DuckDB: pip install 'pytest-ssdqual[history]'") from error
    with tempfile.TemporaryDirectory(prefix="ssdqual-export-") as folder, duckdb.connect() as database:
        lines = Path(folder, "rows.json")
        with lines.open("w", encoding="utf-8") as file:
            for row in rows:
                values = map(_plain, astuple(row))
                file.write(json.dumps(dict(zip(COLUMNS, values, strict=True)), ensure_ascii=True) + "\n")
        table = database.read_json(str(lines), columns=sql_types(), format="newline_delimited")
        table.write_parquet(str(path))


def sql_types() -> dict[str, str]:
    """Return DuckDB's type of each column."""
    hints = get_type_hints(FigureRow)
    return {name: SQL_TYPES[getattr(hints[name], "__name__", "") or _first(hints[name])] for name in COLUMNS}


def _first(union: Any) -> str:  # noqa: ANN401
    return str(union.__args__[0].__name__)


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Return text, a finite number, a truth value or None."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


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
