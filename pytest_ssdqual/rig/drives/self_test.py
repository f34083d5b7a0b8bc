"""Runs the short self-tests of drives, all at the same time, and waits for their ends.

A self-test changes no data. It takes two minutes at most (NVM Express, ACS-4); some drives take longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from pytest_ssdqual.qual.safe_text import line
from pytest_ssdqual.rig.drives import inspection
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Machine

SCRIPT = scripts.text("self_test.sh")
LIMIT_S, PAUSE_S = 900.0, 10.0
DEADLINE_S = 300.0
#: What is said of a drive without a self-test.
ABSENT = "the drive has none, or its health is not read (--ssd-smart-type)"


def run(machine: Machine, drives: Sequence[Drive], progress: Callable[[str, float], None]) -> dict[str, str]:
    """Return by name how the short self-test of each drive ended: a ``SelfTest``, ``ABSENT``, or why it is unknown.

    What runs longer than ``LIMIT_S`` is ended. Requires the lease; ``RigError`` if the machine does not answer.
    """
    records = inspection.read(machine, drives)
    able = [drive for drive in drives if drive.has_health and records[drive.path][0].has_self_tests is not False]
    refused = _command(machine, "begin", able)
    began = running = [drive for drive in able if not refused[drive.name]]
    waited_s = 0.0
    while running and waited_s < LIMIT_S:
        progress(f"short self-tests of {len(running)} drives", LIMIT_S - waited_s)
        time.sleep(PAUSE_S)
        waited_s += PAUSE_S
        records = inspection.read(machine, drives)
        running = [drive for drive in running if records[drive.path][0].activity]
    _command(machine, "end", running)
    ends = {drive.name: records[drive.path][0].last_self_test or "its result is unknown" for drive in began}
    late = {drive.name: f"it had not ended after {LIMIT_S:g} s" for drive in running}
    return {drive.name: ABSENT for drive in drives} | refused | ends | late


def _command(machine: Machine, what: str, drives: Sequence[Drive]) -> dict[str, str]:
    """Begin or end the self-tests; return by name why that was refused, empty for those that were not."""
    if not drives:
        return {}
    words = [word for drive in drives for word in (drive.kname, drive.path, drive.smart_type)]
    answers = machine.run(["sh", "-c", SCRIPT, "self-test", what, *words], deadline_s=DEADLINE_S).text.splitlines()
    return {drive.name: line(answer.strip()) for drive, answer in zip(drives, answers, strict=True)}
