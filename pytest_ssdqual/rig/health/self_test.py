"""Runs the short self-tests of drives, all at the same time, and waits for their ends.

A self-test changes no data. It takes two minutes at most (NVM Express, ACS-4); some drives take longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from pytest_ssdqual.qual.inspection.record import DriveKind, InspectionRecord
from pytest_ssdqual.qual.safe_text import line
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.health import inspection
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Machine, RigError

SCRIPT = scripts.text("self_test.sh")
#: How long a self-test may take, how soon it has to be seen, and the pauses before and after that.
LIMIT_S, BEGIN_S, SHORT_PAUSE_S, PAUSE_S = 900.0, 60.0, 2.0, 10.0
DEADLINE_S = 300.0
#: Of a drive without a self-test, or whose health the user gave up; and of those whose results smartctl does not show.
ABSENT = "the drive has none, or its health is not read (--ssd-smart-type)"
HIDDEN = "smartctl before 7.3 does not show the results of SAS drives"
UNKNOWN, UNSEEN = "its result is unknown", "it was not seen to run"


def run(machine: Machine, drives: Sequence[Drive], progress: Callable[[str, float], None]) -> dict[str, str]:
    """Return by name how the short self-test of each drive ended: a ``SelfTest``, ``ABSENT``, or why it is unknown.

    What runs longer than ``LIMIT_S`` is ended, and all that began if anything is raised. Requires the lease, and that
    these are still the drives; ``RigError`` if the machine does not answer.
    """
    records = inspection.read(machine, drives)
    prevented = {drive.name: _prevented(drive, records[drive.path][0]) for drive in drives}
    running = [drive for drive in drives if not prevented[drive.name]]
    try:
        refused = _command(machine, "begin", running)
        # A self-test that this run did not begin, because of which the drive refuses, is not ended.
        running = [drive for drive in running if not refused[drive.name]]
        ends = _watched(machine, running, progress)
    except BaseException:
        with suppress(RigError):
            _command(machine, "end", running)
        raise
    late = [drive for drive in running if drive.name not in ends]
    _command(machine, "end", late)
    return prevented | refused | ends | {drive.name: f"it had not ended after {LIMIT_S:g} s" for drive in late}


def _watched(machine: Machine, running: Sequence[Drive], progress: Callable[[str, float], None]) -> dict[str, str]:
    """Wait for the ends of self-tests that run; return by name how they ended, without those that run too long."""
    ends: dict[str, str] = {}
    seen: set[str] = set()
    began, waited_s = time.monotonic(), 0.0
    while running and waited_s < LIMIT_S:
        progress(f"short self-tests of {len(running)} drives", LIMIT_S - waited_s)
        time.sleep(SHORT_PAUSE_S if waited_s < BEGIN_S else PAUSE_S)
        waited_s = time.monotonic() - began
        records = inspection.read(machine, running)
        seen |= {drive.name for drive in running if records[drive.path][0].activity}
        for drive in running:
            record = records[drive.path][0]
            if drive.name not in seen:
                # The latest result may be that of an earlier self-test.
                ends |= {drive.name: UNSEEN} if waited_s >= BEGIN_S else {}
            elif not record.activity and not record.unreadable:
                ends[drive.name] = record.last_self_test or UNKNOWN
        running = [drive for drive in running if drive.name not in ends]
    return ends


def _prevented(drive: Drive, record: InspectionRecord) -> str:
    """Return why a drive cannot be judged by a self-test; empty if it can."""
    if not drive.has_health or record.has_self_tests is False:
        return ABSENT
    is_hidden = record.kind is DriveKind.SCSI and record.failed_self_tests is None
    return HIDDEN if is_hidden else ""


def _command(machine: Machine, what: str, drives: Sequence[Drive]) -> dict[str, str]:
    """Begin or end the self-tests; return by name why that was refused, empty for those that were not."""
    if not drives:
        return {}
    words = [word for drive in drives for word in (drive.kname, drive.path, drive.smart_type)]
    answers = machine.run(["sh", "-c", SCRIPT, "self-test", what, *words], deadline_s=DEADLINE_S).text.splitlines()
    return {drive.name: line(answer.strip()) for drive, answer in zip(drives, answers, strict=True)}
