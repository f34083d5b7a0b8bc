"""Reads a command that ``fencing.bound`` made: the inverse of that function, for fakes of machines."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ssdqual.rig.drives.fencing import BOUND


def unbound(argv: Sequence[str]) -> tuple[str, ...]:
    """Return the command within a bound one; any other command is returned as it is."""
    argv = tuple(argv)
    return argv[9 + 4 * int(argv[8]) :] if argv[2:3] == (BOUND,) else argv


def bound_to(argv: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return a bound command's mode (``alone``, ``beside``, ``itself``) and its devices' paths; of others nothing."""
    return (argv[7], tuple(argv[9 : 9 + 4 * int(argv[8]) : 4])) if tuple(argv[2:3]) == (BOUND,) else ("", ())
