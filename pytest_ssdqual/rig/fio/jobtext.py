"""A ``Job`` as a job file that anybody can run by hand: ``fio found.fio``. Pure.

The rule of the module: what comes out has the options of the job and no others, whatever the comments above them say.
"""

from __future__ import annotations

from collections.abc import Iterable

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.rig.fio.jobs import Job

#: Options of the command line, which a job file cannot have: how fio reports, and who is to read it.
OF_THE_COMMAND = ("output", "output-format", "status-interval", "eta")


def text(job: Job, comments: Iterable[str] = ()) -> str:
    """The file, with ``comments`` at its head, a line each: what is not printable in them is escaped.

    ``ValueError`` for an option that has no value, or whose value would not be read as it is.
    """
    lines = [f"# {safe_text.line(each)}".rstrip() for each in comments]
    for option in job.options:
        name, _, value = option.removeprefix("--").partition("=")
        if name in OF_THE_COMMAND:
            continue
        # In a job file "$" begins a variable, ";" and "#" a comment, and blanks at the ends are lost.
        if not value or any(each in "$;#\\[]" or each.isspace() or not each.isprintable() for each in value):
            raise ValueError(f"{option!r} cannot be written into a job file")
        lines += ["", f"[{value}]"] if name == "name" else [f"{name}={value}"]
    return "\n".join(lines) + "\n"
