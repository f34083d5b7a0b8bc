"""The page of a fleet as HTML, by the means of a run's page: its style sheet, everything else escaped, no script."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ssdqual.report.html.page_rendering import environment, style

if TYPE_CHECKING:
    from pytest_ssdqual.report.html.fleet_page import Page

FOLDER = Path(__file__).with_name("templates")
#: Styles of drawings are attributes; see ``page.rendering.policy``.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def render(page: Page) -> str:
    """The whole file."""
    from markupsafe import Markup

    from pytest_ssdqual.report.charts.palette import style_sheet
    from pytest_ssdqual.report.html.fleet_page import Link, Measured, State

    made = environment(FOLDER)
    made.tests["link"] = lambda value: isinstance(value, Link)
    made.tests["measured"] = lambda value: isinstance(value, Measured)
    made.tests["state"] = lambda value: isinstance(value, State)
    own = (FOLDER / "fleet.css").read_text(encoding="utf-8")
    look = Markup(style_sheet() + style() + own)  # noqa: S704 (our own files)
    return made.get_template("fleet.html").render(page=page, policy=POLICY, style=look)
