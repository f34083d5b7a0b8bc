"""The shipped suites by name: ``pytest --pyargs pytest_ssdqual.suites.raid5``.

A wheel has the suites in this folder. A checkout, hence also an editable installation, has them in its folder
``suites``.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parent
#: Folder of a checkout; there is none beside an installed package.
OF_CHECKOUT = PACKAGE.parents[1] / "suites"
FOLDER = OF_CHECKOUT if (OF_CHECKOUT / "raid5").is_dir() else PACKAGE
#: They test this program. ``faults`` is in a checkout only; ``meta`` has promises that are broken on purpose.
OF_PROGRAM = ("faults", "meta")

__path__ = [str(FOLDER)]


def names() -> list[str]:
    """Return the names of the suites that judge a product."""
    return sorted(each.parent.name for each in FOLDER.glob("*/__init__.py") if each.parent.name not in OF_PROGRAM)


def test_id(path: Path) -> str | None:
    """Return the id of a suite's module: ``suites/raid5/test_capacity.py``, wherever it is installed; else None."""
    return f"suites/{path.relative_to(FOLDER).as_posix()}" if path.is_relative_to(FOLDER) else None
