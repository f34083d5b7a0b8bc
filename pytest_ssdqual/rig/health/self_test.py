"""Runs the short or extended self-tests of drives, all at the same time, and waits for their ends.

A self-test changes no data. A short one takes two minutes at most (NVM Express, ACS-4); some drives take longer. An
extended one takes as long as the drive says (30 min of a P4510 of 15 TB, a day of a hard disk).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.inspection.record import LONGEST_SELF_TEST_S, DriveKind, InspectionRecord
from pytest_ssdqual.qual.safe_text import line
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.health import inspection
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Machine, RigError
from pytest_ssdqual.rig.machine.side_by_side import PermittedMachine

SCRIPT = scripts.text("self_test.sh")
#: How long a short self-test may take (an extended one also twice the drive's figure), how soon one has to be seen, and
#: the pauses before and after that.
LIMIT_S, BEGIN_S, SHORT_PAUSE_S, PAUSE_S = 900.0, 60.0, 2.0, 10.0
DEADLINE_S = 300.0
#: Of a drive without a self-test, or whose health the user gave up; and of those whose results smartctl does not show.
ABSENT = "the drive has none, or its health is not read (--ssd-smart-type)"
HIDDEN = "smartctl before 7.3 does not show the results of SAS drives"
UNKNOWN, UNSEEN = "its result is unknown", "it was not seen to run"


@frozen
class SelfTests:
    """How the self-tests of drives ended."""

    #: By name: a ``SelfTest``, ``ABSENT``, or why it is unknown.
    results: Mapping[str, str]
    #: Seconds of the extended self-test by the drive's own figure, by the names of the drives that ran it.
    extended_s: Mapping[str, int] = field(default_factory=dict)


def run(
    machine: PermittedMachine,
    drives: Sequence[Drive],
    progress: Callable[[str, float], None],
    *,
    extended: bool = False,
) -> SelfTests:
    """Run the self-tests of all drives.

    With ``extended`` the extended one of each drive that states at most ``LONGEST_SELF_TEST_S`` for it. What runs
    longer than its limit is ended, and all that began if anything is raised. ``machine`` requires the lease for each
    command, and these have to be still the drives; ``RigError`` if the machine does not answer.
    """
    records = inspection.read(machine, drives)
    prevented = {drive.name: _prevented(drive, records[drive.path][0]) for drive in drives}
    able = [drive for drive in drives if not prevented[drive.name]]
    stated_s = {drive.name: records[drive.path][0].extended_self_test_s or 0 for drive in able if extended}
    extended_s = {name: seconds for name, seconds in stated_s.items() if 0 < seconds <= LONGEST_SELF_TEST_S}
    limits_s = {drive.name: LIMIT_S + 2 * extended_s.get(drive.name, 0) for drive in able}
    running: list[Drive] = []
    try:
        refused: dict[str, str] = {}
        for kind, names in (("extended", extended_s.keys()), ("short", prevented.keys() - extended_s)):
            asked = [drive for drive in able if drive.name in names]
            running += asked  # perhaps, if the command fails
            refused |= _command(machine, kind, asked)
            # A self-test that this run did not begin, because of which the drive refuses, is not ended.
            running = [drive for drive in running if not refused.get(drive.name)]
        ends = _watched(machine, running, limits_s, progress)
    except BaseException:
        with suppress(RigError):
            _command(machine, "end", running)
        raise
    late = [drive for drive in running if drive.name not in ends]
    _command(machine, "end", late)
    too_late = {drive.name: f"it had not ended after {limits_s[drive.name]:g} s" for drive in late}
    ran_s = {name: seconds for name, seconds in extended_s.items() if not refused[name]}
    return SelfTests(prevented | refused | ends | too_late, ran_s)


def _watched(
    machine: Machine,
    drives: Sequence[Drive],
    limits_s: Mapping[str, float],
    progress: Callable[[str, float], None],
) -> dict[str, str]:
    """Wait for the ends of self-tests that run; return by name how they ended, without those that run too long."""
    ends: dict[str, str] = {}
    seen: set[str] = set()
    running = list(drives)
    began, waited_s = time.monotonic(), 0.0
    while running:
        longest_s = max(limits_s[drive.name] for drive in running)
        progress(f"self-tests of {len(running)} drives", longest_s - waited_s)
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
        running = [drive for drive in running if drive.name not in ends and waited_s < limits_s[drive.name]]
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
