"""Adds the suites to the wheel: all but the rehearsals of faults, which need ``tests`` and a lab."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: ``pytest_ssdqual/suites`` has an ``__init__.py`` of its own.
NOT_SHIPPED = ("faults", "__init__.py", "__pycache__")


class Suites(BuildHookInterface[Any]):
    """See the module."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add each folder; an editable installation finds them in the checkout."""
        if version == "editable":
            return
        for path in sorted(Path(self.root, "suites").iterdir()):
            if path.name not in NOT_SHIPPED:
                build_data["force_include"][str(path)] = f"pytest_ssdqual/suites/{path.name}"
