"""A small page that opens by itself: words, drawings and tables; and a drawing as a file of its own. Pure.

The rule of the module: every text may come from a drive, a host or a spec, and is escaped; only drawings are let
through as they are, which ``charts.plate`` made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.charts import base

HERE = Path(__file__).with_name("templates")
#: Of a drawing that is a file, on either background.
ALONE = (
    ":root{color:#16191d;background:#fff;font-family:system-ui,sans-serif}"
    "@media screen and (prefers-color-scheme:dark){:root{color:#e8eaed;background:#14181d}}"
)


@dataclass(frozen=True, slots=True)
class SheetTable:
    """Rows of text below their heads; the first column names the row."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A piece of a page."""

    title: str
    words: tuple[str, ...] = ()
    #: An ``<svg>`` element of ours.
    svg: str = ""
    table: SheetTable = SheetTable()


def page(title: str, lead: Sequence[str], sections: Sequence[Section]) -> str:
    """The whole page, with everything in it that it needs."""
    from jinja2 import Environment
    from markupsafe import Markup

    environment = Environment(autoescape=True, trim_blocks=True, finalize=_shown)
    style = Markup(base.style_sheet() + (HERE / "sheet.css").read_text(encoding="utf-8"))  # noqa: S704 (our own)
    template = environment.from_string((HERE / "sheet.html").read_text(encoding="utf-8"))
    drawn = [{"title": s.title, "words": s.words, "svg": Markup(s.svg), "table": s.table} for s in sections]  # noqa: S704
    return template.render(title=title, lead=lead, sections=drawn, style=style)


def file(svg: str) -> str:
    """The drawing as a file that any viewer shows, in its own colours."""
    style = f"<style>{base.style_sheet()}{ALONE}</style>"
    head, end, rest = svg.partition(">")
    return f'{head} xmlns="http://www.w3.org/2000/svg"{end}{style}{rest}\n'


def _shown(value: object) -> object:
    """Text without control characters; markup of ours as it is."""
    from markupsafe import Markup

    return safe_text.line(value, 2000) if isinstance(value, str) and not isinstance(value, Markup) else value
