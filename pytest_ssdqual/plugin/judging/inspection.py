"""The fixture ``ssd_inspection``: judges what the drives report by the limits of the spec; writes nothing to drives."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from pytest_ssdqual.plugin.judging.sla import Inconclusive
from pytest_ssdqual.plugin.plan import applicability
from pytest_ssdqual.plugin.session.qualification import Qualification
from pytest_ssdqual.plugin.session.state import BayRun
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.inspection import checks
from pytest_ssdqual.qual.inspection.checks import Answer, InspectionVerdict
from pytest_ssdqual.qual.inspection.limits import InspectionTable
from pytest_ssdqual.qual.inspection.record import InspectionRecord
from pytest_ssdqual.qual.names import choice
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.evidence.inspection import of_inspection
from pytest_ssdqual.rig.health import inspection as reader


@frozen
class InspectedBay:
    """The records of all drives, and the names of smartctl's answers in the run folder."""

    drives: tuple[InspectionRecord, ...]
    raw: tuple[str, ...]


def inspect(run: BayRun) -> InspectedBay:
    """Read all drives, without a lease, and record what was read; ``RigError`` if the machine does not answer."""
    drives = run.qualification.bay.drives
    with ExitStack() as stack:
        read = reader.read(run.connected(stack), drives)
    raw = []
    for drive in drives:
        record, answer = read[drive.path]
        name = f"{drive.name}-inspection.json"
        raw.append(run.journal.keep(name, answer.encode("utf-8", "backslashreplace"), folder="health"))
        run.journal.note("inspected", drive=drive.identity, found=plain(record), raw=raw[-1])
    return InspectedBay(tuple(read[drive.path][0] for drive in drives), tuple(raw))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Inspection:
    """Judges the inspected drives, one check at a time."""

    found: Qualification
    bay: InspectedBay
    keep: Callable[[Evidence], None]

    @property
    def drives(self) -> tuple[InspectionRecord, ...]:
        """What each drive reported."""
        return self.bay.drives

    def _judge(self, check: str) -> InspectionVerdict:
        """Judge each drive by its own sheet; drives are compared with those that have the same one."""
        spec = self.found.spec
        groups: dict[str, list[InspectionRecord]] = {}
        limits: dict[str, InspectionTable] = {}
        for drive, record in zip(self.found.bay.drives, self.drives, strict=True):
            own = spec.of(drive.name)
            limits[own.key] = own.inspection
            groups.setdefault(own.key, []).append(record)
        checked = [drive for key, records in groups.items() for drive in checks.check(check, records, limits[key])]
        return InspectionVerdict(check, tuple(checked))

    def judge(self, check: str) -> InspectionVerdict:
        """Judge one check on all drives, e.g. ``judge("power_on_hours")``; the verdict is true if all conform.

        Without a limit, or for a value that these drives do not have, the test is skipped. Raises ``Inconclusive`` (a
        JUnit ``<error>``) if the value of a drive is unknown and no other drive deviates.
        """
        if check not in checks.CHECKS:
            raise pytest.UsageError(f"ssd_inspection has no check {check!r}; {choice(check, checks.CHECKS, 'checks')}")
        found = self.found
        verdict = self._judge(check)
        if verdict.answer is Answer.ABSENT:
            applicability.skip(verdict.sentence)
        self.keep(of_inspection(verdict, source=f"table inspection of {found.spec.key}", raw=self.bay.raw))
        if verdict.answer is Answer.UNLIMITED:
            pytest.skip(f"{found.spec.name} has no limit: {verdict.sentence}")
        if verdict.answer is Answer.UNKNOWN:
            if found.settings.inconclusive == "skip":
                pytest.skip(verdict.sentence)
            raise Inconclusive(verdict.sentence)
        return verdict
