"""What all pages have in common: template environment, style sheet, policy; and small pages of a few sections.

The template engine escapes every text after it was made printable. Exempt are only the package's style sheets and
script, and drawings, whose text is escaped when they are written. If a drawing contained a script, the browser would
not run it: a page's policy names the hash of the package's script and no other.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.run_summary.fitness import LOOKS
from pytest_ssdqual.report.view.tables import MeasuredCell, PageLink, Section, State

if TYPE_CHECKING:
    from jinja2 import Environment

#: Name of the page in the folder of a run or a fleet.
REPORT = "report.html"
FOLDER = Path(__file__).with_name("templates")
#: Style sheet with the colours of drawings.
PALETTE = "palette.css"
#: Maximum length of a line of text.
TEXT_CHARACTERS = 4_000
#: Maximum length of a message in a list; its section has all of it.
BRIEF_CHARACTERS = 300
#: Mark of an outcome, so that colour is not the only difference.
MARKS = {Finding.PASS: "✓", Finding.FAIL: "✗", Finding.INCONCLUSIVE: "?", Finding.BOUNDED: "‖", Finding.OBSERVED: "·"}
SIZE = re.compile(r'<svg viewBox="0 0 (?P<width>[\d.]+) (?P<height>[\d.]+)"')
#: Style of a drawing that is a file, on light and dark background.
ALONE = (
    ":root{color:#16191d;background:#fff;font-family:system-ui,sans-serif}"
    "@media screen and (prefers-color-scheme:dark){:root{color:#e8eaed;background:#14181d}}"
)


def environment_of(finalize: Callable[[object], object]) -> Environment:
    """Return an environment of the package's templates; ``finalize`` makes what they print harmless."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        autoescape=True,
        finalize=finalize,
        loader=FileSystemLoader(FOLDER),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    # Kinds of cells: a drive may call itself "pass".
    for name, kind in (("finding", Finding), ("link", PageLink), ("measured", MeasuredCell), ("state", State)):
        made.tests[name] = lambda value, kind=kind: isinstance(value, kind)
    return made


@cache
def environment() -> Environment:
    """Return the environment of the pages."""
    from markupsafe import Markup

    def shown(value: object) -> object:
        return value if isinstance(value, Markup) else safe_text.line(str(value), TEXT_CHARACTERS)

    made = environment_of(shown)
    # Each line of a text is made printable by itself.
    made.filters["lines"] = lambda text: Markup("\n").join(
        safe_text.line(line, TEXT_CHARACTERS) for line in str(text).split("\n")
    )
    made.filters["briefly"] = lambda text: safe_text.line(str(text), BRIEF_CHARACTERS)
    made.filters["drawing"] = Markup
    made.globals["marks"] = MARKS
    made.globals["looks"] = LOOKS
    return made


def render(template: str, *styles: str, script: str = "", **content: object) -> str:
    """Return a page; ``styles`` and ``script`` are names of the package's files."""
    from markupsafe import Markup

    ours = Markup(own(script) if script else "")  # noqa: S704 (our own file)
    return (
        environment()
        .get_template(template)
        .render(
            policy=policy(ours),
            script=ours,
            style=Markup("".join(map(own, (PALETTE, *styles)))),  # noqa: S704 (our own files)
            **content,
        )
    )


def policy(script: str = "") -> str:
    """Return the Content-Security-Policy of a page.

    The script is allowed by its hash. Styles cannot be, because hashes do not cover ``style`` attributes, and every
    stroke of a drawing has one. Images are those inside of drawings (heat maps).
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    ours = f"script-src 'sha256-{digest}'; " if script else ""
    return f"default-src 'none'; {ours}style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def own(name: str) -> str:
    """Return the text of one of the package's files."""
    return (FOLDER / name).read_text(encoding="utf-8")


def sheet(title: str, lead: Sequence[str], sections: Sequence[Section]) -> str:
    """Return a small page of words, drawings and tables."""
    return render("sheet.html", "sheet.css", title=title, lead=lead, sections=sections)


def svg_file(svg: str) -> str:
    """Return a drawing as an SVG file with its own colours and size; ``ValueError`` if it is none."""
    size = SIZE.match(svg)
    if not size:
        raise ValueError("this is no drawing")
    names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    head, end, rest = svg.partition(">")
    style = f"<style>{own(PALETTE)}{ALONE}</style>"
    return f'{head} {names} width="{size["width"]}" height="{size["height"]}"{end}{style}{rest}\n'
