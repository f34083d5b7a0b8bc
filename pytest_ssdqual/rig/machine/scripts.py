"""The scripts that run on the machine under test: files in ``rig/scripts``, each of which begins with its manual.

Names of drives and the user's words reach a script as arguments only, never as a part of its text; see
docs/decisions.md D108.
"""

from __future__ import annotations

from importlib import resources

from pytest_ssdqual.rig.machine.machine import Completed, Machine, ask


def text(name: str) -> str:
    """Return the script as it is sent: without comment lines.

    The transcript stores every command in full. So no line of a quoted text in a script may begin with ``#``.
    """
    whole = resources.files("pytest_ssdqual").joinpath("rig", "scripts", name).read_text("utf-8")
    return "".join(line for line in whole.splitlines(keepends=True) if not line.lstrip().startswith("#")).lstrip("\n")


def answer(machine: Machine, script: str, *words: str, deadline_s: float = 60.0) -> Completed:
    """Run a script with its name and its arguments, again if the connection was lost.

    It changes nothing, or repeats the same change, and reports by its output, not by its status.
    """
    return ask(machine, ["sh", "-c", script, *words], deadline_s)
