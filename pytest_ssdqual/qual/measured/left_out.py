"""Drives side by side that a measurement is without, and what that means for a verdict on the others."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.names import named

#: Drives named in a sentence.
MOST_NAMED = 5


@frozen
class LeftOutDrive:
    """A drive that was to be measured and has no figure."""

    serial: str
    #: Index among the drives of the run, in the order in which they were given.
    place: int
    #: A clause without a subject: ``failed in test_iops.py::test_iops``.
    why: str
    #: True if it failed under the load, which is a verdict of its own; False if nothing is known about it.
    failed: bool

    def __str__(self) -> str:
        return f"{self.serial} ({self.why})"


def describe(drives: Sequence[LeftOutDrive], of: int) -> str:
    """Return a clause that names the drives that are left out of ``of``; empty if there are none."""
    if not drives:
        return ""
    is_or_are = "is" if len(drives) == 1 else "are"
    return f"{len(drives)} of {of} drives {is_or_are} left out: {named(drives, MOST_NAMED)}"
