"""Evidence of the drives themselves: the receiving inspection, failures under the load, and health; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pytest_ssdqual.qual.inspection.checks import Answer, CheckedDrive
from pytest_ssdqual.qual.inspection.verdict import InspectionVerdict
from pytest_ssdqual.qual.safe_text import line
from pytest_ssdqual.qual.spec.claims import Direction
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.validity.attribution import Cause, Culprit
from pytest_ssdqual.qual.validity.drive_failure import FailedDrive
from pytest_ssdqual.report.evidence.evidence import INSPECTED, Evidence, Finding, Part

#: Claim about the drives that a measurement was to load, about the health of every drive of the run, and about the
#: drives' own self-tests.
FAILED, HEALTH, SELF_TEST = "failed_drives", "drive_health", "self_test"
#: Claims that judge no performance and no data.
OF_HEALTH = (HEALTH, SELF_TEST)
#: What the evidence of a claim about health has in the place of a workload.
LOAD, RUN = "load", "run"
#: What the evidence has in the place of a workload.
WORKLOAD = "inspection"
FINDINGS = {
    Answer.CONFORMS: Finding.PASS,
    Answer.DEVIATES: Finding.FAIL,
    Answer.UNKNOWN: Finding.INCONCLUSIVE,
    Answer.UNLIMITED: Finding.OBSERVED,
    Answer.ABSENT: Finding.OBSERVED,
}
SOURCE = "a drive under test stays healthy (docs/faults.md)"
#: Kernel messages of a drive in the evidence; the record has all.
MOST_MESSAGES = 10


def failed_in(serial: str, test: str) -> str:
    """Return the clause by which a test that needs a failed drive names the test in which it failed."""
    return f"drive {serial} failed in {test}"


def of_failures(about: str, drives: Sequence[FailedDrive]) -> Evidence:
    """Return the evidence that drives failed while ``about``, a geometry, was under load."""
    sentence = "; ".join(each.sentence for each in drives)
    return counted(
        FAILED, about, LOAD, {each.serial: each.findings for each in drives},
        sentence=f"{sentence} (under the load of {about})",
        remarks=tuple(f"{each.serial}: {word}" for each in drives for word in each.kernel[:MOST_MESSAGES]),
    )  # fmt: skip


def of_drives(
    about: str,
    findings: Mapping[str, Sequence[str]],
    sentence: str,
    *,
    spec: str,
    remarks: Sequence[str] = (),
) -> Evidence:
    """Return the evidence of the health of all drives, with the findings by serial number.

    ``remarks`` are about what decides nothing.
    """
    return counted(
        HEALTH, about, RUN, findings,
        sentence=sentence, remarks=(*told(findings), *remarks),
        source=f"table health of {spec}: {SOURCE}",
    )  # fmt: skip


def told(findings: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield each finding with the serial number of its drive."""
    return (f"{serial}: {finding}" for serial, found in findings.items() for finding in found)


def counted(
    claim: str,
    about: str,
    workload: str,
    findings: Mapping[str, Sequence[str]],
    *,
    sentence: str,
    remarks: tuple[str, ...],
    source: str = SOURCE,
    raw: tuple[str, ...] = (),
    blames_drives: bool = False,
) -> Evidence:
    """Return evidence whose figure is the number of drives with a finding; ``findings`` by serial number.

    With ``blames_drives`` these drives are the cause.
    """
    bad = [serial for serial, found in findings.items() if found]
    evidence = none_allowed(
        claim, about, workload, len(bad), len(findings),
        source=source, sentence=line(sentence, 4000),
    )  # fmt: skip
    return replace(
        evidence,
        members=tuple(
            Part(serial, {"value": float(len(found))}, Finding.FAIL if found else Finding.PASS)
            for serial, found in findings.items()
        ),
        worst=bad[0] if bad else "",
        raw=raw,
        remarks=remarks,
        cause=Cause(Culprit.DRIVE, 0.0, findings[bad[0]][0], tuple(bad)) if bad and blames_drives else None,
    )


def none_allowed(claim: str, about: str, workload: str, wrong: int, n: int, *, source: str, sentence: str) -> Evidence:
    """Return evidence whose figure is the number of what is wrong among ``n``; the limit is 0."""
    value = float(wrong)
    return Evidence(
        claim=claim,
        geometries=(about,),
        workloads=(workload,),
        value=value,
        low=value,
        high=value,
        n=n,
        unit=Unit.COUNT,
        limit=0.0,
        direction=Direction.AT_MOST,
        source=source,
        outcome=Finding.FAIL if wrong else Finding.PASS,
        margin_percent=-100.0 if wrong else 0.0,
        sentence=sentence,
        is_reading=True,
    )


def of_inspection(verdict: InspectionVerdict, *, source: str, raw: tuple[str, ...] = ()) -> Evidence:
    """Return the evidence of one check, whose parts are the drives; its figure counts those that deviate.

    Drives whose value is unknown widen the interval: they may deviate, too.
    """
    deviating, unknown = (float(len(verdict.of(answer))) for answer in (Answer.DEVIATES, Answer.UNKNOWN))
    outcome = FINDINGS[verdict.answer]
    is_promised = outcome is not Finding.OBSERVED
    margin_percent = -100.0 if deviating else 0.0
    return Evidence(
        claim=f"{INSPECTED}{verdict.check}",
        geometries=(f"drivex{len(verdict.drives)}",),
        workloads=(WORKLOAD,),
        value=deviating,
        low=deviating,
        high=deviating + unknown,
        n=len(verdict.drives),
        unit=Unit.COUNT,
        limit=0.0 if is_promised else None,
        direction=Direction.AT_MOST,
        source=source if is_promised else "",
        outcome=outcome,
        margin_percent=margin_percent if is_promised else None,
        sentence=verdict.sentence,
        figures={"deviating_drives": int(deviating), "unknown_drives": int(unknown)},
        raw=raw,
        members=tuple(map(_part, verdict.drives)),
        is_reading=True,
    )


def _part(drive: CheckedDrive) -> Part:
    numbers = {"value": drive.value, "limit": drive.limit}
    figures = {name: float(number) for name, number in numbers.items() if number is not None}
    return Part(drive.drive, figures, FINDINGS[drive.answer], (), drive.reading, drive.bound, drive.path)
