"""Expected number of drives of a bay, and the source of that number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: Shown where only a pattern determined the number of drives.
NONE = "no number of drives expected"


@dataclass(frozen=True, slots=True)
class ExpectedDrives:
    """Expected number of drives."""

    drives: int
    #: Such as ``--ssd-expect`` or ``the inventory``.
    source: str

    def __str__(self) -> str:
        return f"{self.drives} drive{'s' if self.drives != 1 else ''} expected ({self.source})"

    def to_record(self) -> dict[str, object]:
        """Plain JSON data."""
        return {"drives": self.drives, "source": self.source}


def of_record(plain: object) -> ExpectedDrives | None:
    """Return the inverse of ``to_record``; None for anything else."""
    if not isinstance(plain, Mapping) or not isinstance(plain.get("drives"), int):
        return None
    return ExpectedDrives(plain["drives"], str(plain.get("source")))


def describe(expected: ExpectedDrives | None) -> str:
    """Return a phrase for people."""
    return str(expected) if expected else NONE
