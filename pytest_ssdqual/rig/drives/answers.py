"""Whether drives answer a read, within a time."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ssdqual.qual.units import format_duration
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Machine, RigError

AWAIT = scripts.text("await_answer.sh")
#: Instead of a number of requests: nothing was read.
UNREAD = "unread"
#: Seconds that the command may take beyond the time that it waits.
GRACE_S = 60.0


def unanswered(machine: Machine, paths: Sequence[str], limit_s: float) -> dict[str, str]:
    """Wait until these drives have answered a read; return a clause about each that has not within ``limit_s``.

    ``RigError`` if the machine does not say it.
    """
    argv = ["sh", "-c", AWAIT, "await_answer", f"{limit_s:.0f}", *paths]
    *lines, end = machine.run(argv, deadline_s=limit_s + GRACE_S, repeatable=True).text.splitlines() or [""]
    waited = end.removeprefix("end ")
    if not waited.isdecimal():
        raise RigError(f"{machine.name} does not say which of {', '.join(paths)} answer a read")
    silent = {}
    for line in lines:
        path, _, flying = line.rpartition(" ")
        if flying == UNREAD:
            silent[path] = "cannot be read: its device node cannot be opened, or the machine has no dd"
            continue
        requests = f"{flying} request{'' if flying == '1' else 's'} in flight"
        waiting = format_duration(max(1.0, float(waited)))
        silent[path] = f"does not answer: a read of it has been waiting for {waiting}, {requests}"
    return silent
