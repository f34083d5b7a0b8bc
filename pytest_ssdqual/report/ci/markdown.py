"""``summary.md`` of a run and of a fleet: verdict, failures and tables on one screen, as Markdown for a CI job's page.

Every text that is not a constant of this package is in a code span, escaped so that it stays there. A backslash would
not do: GitHub looks for @mentions, #1, addresses and commits in the text after Markdown was parsed, and spares only
code (https://github.github.com/gfm/#code-spans).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.html import page as pages
from pytest_ssdqual.report.html.page import REPORT
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_folder.journal import RECORDS
from pytest_ssdqual.report.run_summary.overview import details, lists, overview
from pytest_ssdqual.report.run_summary.run_view import RunView
from pytest_ssdqual.report.view import promises, subject

if TYPE_CHECKING:
    from jinja2 import Environment

NAME = "summary.md"
#: Promises of a run above which the table has a row for each claim of each level: the summary is one screen.
MOST_LISTED = 20
#: Characters of this package's texts; none has a meaning in Markdown, in a table, or for GitHub.
OURS = re.compile(r"(?!.*www\.)[A-Za-z0-9 µ×±≤≥…∞→%,.;()'+:-]*")


@cache
def _environment() -> Environment:
    """Return the environment of the templates, in which every text that is printed is made harmless."""
    from markupsafe import Markup

    made = pages.environment_of(lambda value: value if isinstance(value, Markup) else Markup(words(str(value))))  # noqa: S704
    made.filters["code"] = lambda foreign, *most: Markup(code(foreign, *most))  # noqa: S704 (a code span)
    return made


def text(folder: Path) -> str:
    """Return the summary of a run; it states what is left out. ``OSError`` without records."""
    run = RunView.read(folder)
    return (
        _environment()
        .get_template("summary.md")
        .render(
            run=run,
            first=overview(run),
            inspected=promises.inspection_matrix(promises.inspected_drives(run.judged), only_deviating=True),
            lists=lists(run)[1:],
            promised=promises.promised(run.judged, MOST_LISTED),
            drives=subject.drives(run.manifest, run.verdict.coverage.untested_as),
            details=tuple(details(run, _page_or(RECORDS, run.folder))),
            all=f"{RECORDS} in the run folder has all of them",
        )
    )


def fleet_text(page: Mapping[str, Any]) -> str:
    """Return the summary of a fleet (``fleet.page_content``)."""
    rest = f"{_page_or('each folder below bays/', Path(page['folder']))} has them"
    return _environment().get_template("fleet.md").render(page=page, rest=rest)


def write(folder: Path) -> Path:
    """Write ``summary.md`` into a run folder with mode 0600; ``OSError`` if that fails."""
    path = folder / NAME
    safe_files.write_whole(path, text(folder).encode("utf-8", "backslashreplace"))
    return path


def code(foreign: str, most: int = safe_text.LINE_CHARACTERS) -> str:
    """Return a code span of any text; characters that would end it or a table cell are written as escapes.

    A backslash has no meaning in a code span, so the escapes are visible.
    """
    shown = safe_text.line(foreign.replace("`", "\\x60").replace("|", "\\x7c"), most)
    return f"`{shown}`" if shown.strip() else "unknown"


def words(own: str) -> str:
    """Return a text that consists of harmless characters as it is, any other one as a code span."""
    return own if OURS.fullmatch(own) else code(own)


def _page_or(other: str, folder: Path) -> str:
    """Return the name of the page; ``other`` if the folder has no page."""
    return REPORT if (folder / REPORT).is_file() else other
