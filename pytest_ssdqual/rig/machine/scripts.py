"""The scripts that run on the machine under test: files in ``rig/scripts``, each of which begins with its manual.

What a user wrote and what a drive calls itself reach a script as parameters only, never as a part of its text.
"""

from __future__ import annotations

from importlib import resources


def text(name: str) -> str:
    """The script as it is sent: without the lines that are comments.

    They would be in every line of the transcript and on the machine's process list. So no line of a quoted text in a
    script may begin with ``#``.
    """
    whole = resources.files("pytest_ssdqual").joinpath("rig", "scripts", name).read_text("utf-8")
    return "".join(line for line in whole.splitlines(keepends=True) if not line.lstrip().startswith("#")).lstrip("\n")
