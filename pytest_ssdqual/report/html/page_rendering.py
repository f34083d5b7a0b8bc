"""A composed page as HTML: our own template, style sheet and script in one text, everything else escaped.

The rule of the module: text is escaped by the template engine, always, after it was made printable. What is exempt is
listed here: our own style sheet and script, and the drawings, whose text was escaped when they were written. If one of
those ever held a script, the browser would still not run it: only ours has the hash that the page's policy names.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.evidence.part import Finding

if TYPE_CHECKING:
    from jinja2 import Environment

    from pytest_ssdqual.report.html.run_page import Page

FOLDER = Path(__file__).with_name("templates")
#: Of one piece of text: a spec or a protocol is the longest.
TEXT_CHARACTERS = 4_000
#: Of a message in a list, which has a section of its own.
BRIEF_CHARACTERS = 300
#: A mark and a word, never a colour alone.
OUTCOMES = {
    Finding.PASS: ("✓", "kept"),
    Finding.FAIL: ("✗", "broken"),
    Finding.INCONCLUSIVE: ("?", "undecided"),
    Finding.OBSERVED: ("·", "observed"),
}


def render(page: Page) -> str:
    """The whole file."""
    from markupsafe import Markup

    from pytest_ssdqual.report.charts.palette import style_sheet

    script = _own("page.js")
    return (
        environment(FOLDER)
        .get_template("page.html")
        .render(
            page=page,
            policy=policy(script),
            script=Markup(script),  # noqa: S704 (our own file)
            style=Markup(style_sheet() + style()),  # noqa: S704
        )
    )


def style() -> str:
    """Our own style sheet, for pages like this one."""
    return _own("page.css")


@cache
def environment(folder: Path) -> Environment:
    """For the templates of a folder and those of this one; see the module."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def shown(value: object) -> object:
        return value if isinstance(value, Markup) else safe_text.line(str(value), TEXT_CHARACTERS)

    made = Environment(
        autoescape=True,
        finalize=shown,
        loader=FileSystemLoader([folder, FOLDER]),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    # Texts of several lines, of which each is made printable by itself.
    made.filters["lines"] = lambda text: Markup("\n").join(
        safe_text.line(line, TEXT_CHARACTERS) for line in str(text).split("\n")
    )
    made.filters["briefly"] = lambda text: safe_text.line(str(text), BRIEF_CHARACTERS)
    made.filters["drawing"] = Markup
    made.tests["finding"] = lambda value: isinstance(value, Finding)  # not a drive that calls itself "pass"
    made.globals["outcomes"] = OUTCOMES
    return made


def policy(script: str) -> str:
    """The page's Content-Security-Policy.

    The script is named by its hash, so no other one is run. Styles cannot be: every stroke of a drawing has a ``style``
    attribute with its colour, and hashes do not cover attributes. Images are those inside of drawings (heat maps).
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _own(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
