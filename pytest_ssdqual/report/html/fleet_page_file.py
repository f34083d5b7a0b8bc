"""The page of a fleet: its bays side by side, as one HTML file like the page of each of them, and ``summary.md``.

The rule of the room: a bay's verdict is its own run's; here it is only put beside the others. A bay that was lost or
never begun is told as that, and never as a verdict.
"""

from __future__ import annotations

from pathlib import Path

from pytest_ssdqual.report.ci import markdown
from pytest_ssdqual.report.run_folder import safe_files

NAME = "report.html"


def write(folder: Path) -> Path:
    """Write ``report.html`` and ``summary.md`` of a fleet's folder, for its owner alone; the path of the page.

    What ``fleet.json`` says of the end must have been written before. ``OSError`` if there is no room.
    """
    from pytest_ssdqual.report.ci.markdown import fleet_text
    from pytest_ssdqual.report.fleet.view import FleetView
    from pytest_ssdqual.report.html.fleet_page import compose, render

    seen = FleetView.read(folder)
    page = compose(seen)
    safe_files.write_whole(folder / markdown.NAME, fleet_text(page).encode("utf-8", "backslashreplace"))
    path = folder / NAME
    safe_files.write_whole(path, render(page).encode("utf-8", "backslashreplace"))
    return path


def differences(folder: Path) -> list[str]:
    """Of protocol, spec, versions and machines: what is not the same in all bays, a line each."""
    from pytest_ssdqual.report.fleet.text import differing
    from pytest_ssdqual.report.fleet.view import FleetView

    return differing(FleetView.read(folder))


def side_by_side(folder: Path, width: int) -> list[str]:
    """The same in short, as lines for a terminal."""
    from pytest_ssdqual.report.fleet.text import told
    from pytest_ssdqual.report.fleet.view import FleetView

    return told(FleetView.read(folder), width)
