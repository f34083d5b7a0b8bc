"""The page of a run: one HTML file that a stranger understands, offline, in print and with a screen reader.

The rule of the room: everything that is shown was read from the run folder; it is text, whatever it looks like, and
nothing of the page comes from anywhere else (its Content-Security-Policy says so to the browser).
"""

from __future__ import annotations

from pathlib import Path

from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_folder.story import Story

NAME = "report.html"


def write(folder: Path) -> Path:
    """Write ``report.html`` of a run folder, for its owner alone, and return its path; an old one is replaced.

    Charts that cannot be drawn are missing from it, and it says so. ``OSError`` if there are no records, or no room
    for the page; then an old one stays.
    """
    from pytest_ssdqual.report.html.page_rendering import render
    from pytest_ssdqual.report.html.run_page import compose

    text = render(compose(Story.read(folder)))
    path = folder / NAME
    safe_files.write_whole(path, text.encode("utf-8", "backslashreplace"))
    return path
