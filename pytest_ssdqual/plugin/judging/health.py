"""The fixtures ``ssd_health`` and ``ssd_self_test``: judge the health of all drives, and their own self-tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

import pytest

from pytest_ssdqual.plugin.plan import applicability, marks, order
from pytest_ssdqual.plugin.session.resume import ResumedRun
from pytest_ssdqual.plugin.stash import RUN, keep_evidence
from pytest_ssdqual.qual.inspection.record import LONGEST_SELF_TEST_S, SelfTest
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.stats import drive_counters
from pytest_ssdqual.qual.units import format_duration
from pytest_ssdqual.report.evidence import health
from pytest_ssdqual.rig.campaign.campaign import Campaign
from pytest_ssdqual.rig.drives import failed
from pytest_ssdqual.rig.drives.failed import DriveFailures
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.health import self_test
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement

#: Drives whose findings the sentence has; the evidence has all.
NAMED = 3
#: Remark about a drive whose extended self-test was asked for.
NO_EXTENDED = (
    "{}: only its short self-test ran, because it states no duration of its extended one, or more than "
    f"{format_duration(LONGEST_SELF_TEST_S)}"
)


@dataclass(frozen=True, slots=True, repr=False)
class DrivesHealth:
    """Health of the drives of a run; true if there is no finding about any of them."""

    #: By serial number.
    findings: Mapping[str, tuple[str, ...]]
    #: What the findings are of, in the sentence.
    what: str = "health"

    def __bool__(self) -> bool:
        return not any(self.findings.values())

    def __repr__(self) -> str:
        count = len(self.findings)
        about = f"{self.what} of {count} drive{'' if count == 1 else 's'}"
        bad = [f"{serial}: {'; '.join(each)}" for serial, each in self.findings.items() if each]
        if not bad:
            return f"{about}: no finding"
        more = f"; and {len(bad) - NAMED} more" if len(bad) > NAMED else ""
        return f"{about}: {len(bad)} with findings: {'; '.join(bad[:NAMED])}{more}"


def judge(request: pytest.FixtureRequest, campaign: Campaign) -> DrivesHealth:
    """Return the health of all drives now, and record it as evidence of the test.

    Skips the test if the health of a drive is not read, and there is no finding about another one.
    """
    setup, run = campaign.setup, request.config.stash[RUN].qualification
    drives = setup.held.drives
    found = DrivesHealth(failed.findings(setup.machine, drives, setup.failures))
    unread = [drive.name for drive in drives if drive.name not in found.findings]
    if found and unread:
        others = f"; {found!r}" if found.findings else ""
        applicability.skip(
            f"the health of {len(unread)} of {len(drives)} drives is not read, see --ssd-smart-type{others}"
        )
    repaired = [
        (serial, each) for serial in (drive.name for drive in drives) for each in setup.failures.repairs(serial)
    ]
    evidence = health.of_drives(
        str(Geometry(RaidLevel.DRIVE, len(found.findings))), found.findings, repr(found),
        spec=run.spec.key,
        remarks=[
            *(f"{serial}: {sentence}" for serial, (sentence, is_defect) in repaired if not is_defect),
            *(f"{drive.name}: {worn}" for drive in drives if (worn := _endurance(drive, setup.failures, run.spec))),
        ],
    )  # fmt: skip
    keep_evidence(request.node, evidence)
    return found


def _endurance(drive: Drive, failures: DriveFailures, spec: Spec) -> str:
    """Return what the wear of the run says about a drive's endurance; empty if it does not report wear and writes."""
    before, now = failures.before.get(drive.path), failures.latest.get(drive.path)
    if before is None or now is None or None in (before.percentage_used, now.percentage_used):
        return ""
    written = (now.data_written_bytes or 0) - (before.data_written_bytes or 0)
    used, percent = before.percentage_used or 0, now.percentage_used or 0
    if before.data_written_bytes is None or written <= 0 or percent < used:
        return ""
    return drive_counters.endurance(used, percent, written, spec.of(drive.name).endurance_bytes)


def self_test_of(request: pytest.FixtureRequest, campaign: Campaign) -> DrivesHealth:
    """Run the self-tests of all drives that have not failed, and record their results as evidence of the test.

    They are extended ones if the fixture's parameter is ``extended``, where that does not take too long. A self-test
    that failed in an earlier session of the run stays failed. Skips the test if no drive has a self-test.
    ``InvalidMeasurement`` if none failed, and the result of one is unknown; ``RigError`` as of
    ``HeldDrives.require_same``.
    """
    setup, run = campaign.setup, request.config.stash[RUN].qualification
    drives = [drive for drive in setup.held.drives if drive.name not in setup.failures.failed]
    if not drives:
        applicability.skip("no self-test: all drives have failed")
    setup.held.require_same()
    is_extended = marks.parameters(request.node).get("ssd_self_test") == order.EXTENDED
    tested = self_test.run(setup.held.leased, drives, setup.progress, extended=is_extended)
    setup.held.require_same()  # the results are by path
    setup.logbook.note("self_test", results=tested.results, extended_s=tested.extended_s)
    results = dict(tested.results)
    results |= dict.fromkeys(results.keys() & _failed_earlier(run.resumed), SelfTest.FAILED.value)
    if set(results.values()) <= {self_test.ABSENT}:
        applicability.skip(f"no self-test of {len(drives)} drives: {self_test.ABSENT}")
    kinds = {serial: "extended" if serial in tested.extended_s else "short" for serial in results}
    findings = {
        serial: (f"its {kinds[serial]} self-test failed",) if result == SelfTest.FAILED else ()
        for serial, result in results.items()
        if result in (SelfTest.PASSED, SelfTest.FAILED)
    }
    others = {serial: result for serial, result in results.items() if serial not in findings}
    remarks = [f"self-test of {serial}: {result}" for serial, result in others.items()]
    remarks += [f"no self-test of {serial}, which failed" for serial in setup.failures.failed]
    remarks += [NO_EXTENDED.format(serial) for serial in findings if is_extended and kinds[serial] == "short"]
    judged = DrivesHealth(findings, "self-tests")
    if judged and set(others.values()) - {self_test.ABSENT}:
        raise InvalidMeasurement("; ".join(remarks))
    evidence = health.counted(
        health.SELF_TEST, str(Geometry(RaidLevel.DRIVE, len(findings))), health.RUN, findings,
        sentence=repr(judged), remarks=tuple(remarks),
        source="a drive passes its own self-test (docs/integrity.md)",
    )  # fmt: skip
    keep_evidence(request.node, evidence)
    return judged


def _failed_earlier(resumed: ResumedRun | None) -> set[str]:
    """Return the names of the drives whose self-test failed in an earlier session."""
    if resumed is None:
        return set()
    records = (record.facts.get("results") for record in resumed.past.story.of("self_test"))
    results = chain.from_iterable(each.items() for each in records if isinstance(each, dict))
    return {serial for serial, result in results if result == SelfTest.FAILED}
