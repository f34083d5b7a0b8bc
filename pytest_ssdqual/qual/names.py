"""Enumeration of names in a sentence."""

from __future__ import annotations

from collections.abc import Sequence


def named(names: Sequence[object], most: int, separator: str = ", ") -> str:
    """Return at most ``most`` names and the number of the others: ``dut1, dut2 and 3 more``."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return separator.join(map(str, names[:most])) + more
