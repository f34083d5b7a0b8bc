"""Runs the short self-tests of drives, all at the same time, and waits for their ends.

A self-test changes no data. It takes two minutes at most (NVM Express, ACS-4); some drives take longer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from pytest_ssdqual.qual.inspection.record import DriveKind, InspectionRecord
from pytest_ssdqual.qual.safe_text import line
from pytest_ssdqual.rig.drives import inspection
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Machine

SCRIPT = scripts.text("self_test.sh")
#: How long a self-test may take, how soon it has to be seen, and the pauses before and after that.
LIMIT_S, BEGIN_S, SHORT_PAUSE_S, PAUSE_S = 900.0, 60.0, 2.0, 10.0
DEADLINE_S = 300.0
#: What is said of a drive without a self-test.
ABSENT = "the drive has none, or its result is not shown (--ssd-smart-type; SAS drives need smartctl 7.3)"
UNKNOWN, UNSEEN = "its result is unknown", "it was not seen to run"


def run(machine: Machine, drives: Sequence[Drive], progress: Callable[[str, float], None]) -> dict[str, str]:
    """Return by name how the short self-test of each drive ended: a ``SelfTest``, ``ABSENT``, or why it is unknown.

    What runs longer than ``LIMIT_S`` is ended. Requires the lease; ``RigError`` if the machine does not answer.
    """
    records = inspection.read(machine, drives)
    able = [drive for drive in drives if drive.has_health and _has_result(records[drive.path][0])]
    refused = _command(machine, "begin", able)
    running = [drive for drive in able if not refused[drive.name]]
    ends: dict[str, str] = {}
    seen: set[str] = set()
    waited_s = 0.0
    while running and waited_s < LIMIT_S:
        progress(f"short self-tests of {len(running)} drives", LIMIT_S - waited_s)
        pause_s = SHORT_PAUSE_S if waited_s < BEGIN_S else PAUSE_S
        time.sleep(pause_s)
        waited_s += pause_s
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
    _command(machine, "end", running)
    late = {drive.name: f"it had not ended after {LIMIT_S:g} s" for drive in running}
    return {drive.name: ABSENT for drive in drives} | refused | ends | late


def _has_result(record: InspectionRecord) -> bool:
    """Return whether the drive has self-tests whose results can be read: smartctl before 7.3 shows none of SAS."""
    is_hidden = record.kind is DriveKind.SCSI and record.failed_self_tests is None
    return record.has_self_tests is not False and not is_hidden


def _command(machine: Machine, what: str, drives: Sequence[Drive]) -> dict[str, str]:
    """Begin or end the self-tests; return by name why that was refused, empty for those that were not."""
    if not drives:
        return {}
    words = [word for drive in drives for word in (drive.kname, drive.path, drive.smart_type)]
    answers = machine.run(["sh", "-c", SCRIPT, "self-test", what, *words], deadline_s=DEADLINE_S).text.splitlines()
    return {drive.name: line(answer.strip()) for drive, answer in zip(drives, answers, strict=True)}
