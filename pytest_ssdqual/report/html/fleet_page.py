"""The page of a fleet as HTML without a script."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_ssdqual.report.ci import markdown
from pytest_ssdqual.report.fleet.page_content import compose
from pytest_ssdqual.report.fleet.view import FleetView
from pytest_ssdqual.report.html import page as pages
from pytest_ssdqual.report.html.page import REPORT
from pytest_ssdqual.report.run_folder import safe_files


def render(page: Mapping[str, Any]) -> str:
    """Return the HTML file."""
    return pages.render("fleet.html", "page.css", "fleet.css", page=page)


def write(folder: Path) -> Path:
    """Write ``report.html`` and ``summary.md`` of a fleet's folder with mode 0600; return the path of the page.

    Call it after ``fleet.json`` records the end. ``OSError`` without space.
    """
    page = compose(FleetView.read(folder))
    path = folder / REPORT
    safe_files.write_whole(path, render(page).encode("utf-8", "backslashreplace"))
    safe_files.write_whole(folder / markdown.NAME, markdown.fleet_text(page).encode("utf-8", "backslashreplace"))
    return path
