"""The shipped suites by name: ``pytest --pyargs pytest_ssdqual.suites.raid5``.

A wheel has the suites in this folder. A checkout, hence also an editable installation, has them in its folder
``suites``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
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


def judging() -> dict[str, list[str]]:
    """Return the suites that judge each claim, by the marks ``ssd_promise`` in their source; this imports no suite."""
    found: dict[str, list[str]] = {}
    for name in names():
        sources = (path.read_text(encoding="utf-8") for path in sorted((FOLDER / name).glob("test_*.py")))
        for claim in dict.fromkeys(claim for source in sources for claim in _promised(ast.parse(source))):
            found.setdefault(claim, []).append(name)
    return found


def _promised(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "ssd_promise":
            yield from map(ast.literal_eval, node.args)


def test_id(path: Path) -> str | None:
    """Return the id of a suite's module: ``suites/raid5/test_capacity.py``, wherever it is installed; else None."""
    return f"suites/{path.relative_to(FOLDER).as_posix()}" if path.is_relative_to(FOLDER) else None
