"""Evidence of drives that failed under the load, and of the health of all drives; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pytest_ssdqual.qual.safe_text import line
from pytest_ssdqual.qual.spec.claims import Direction
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.validity.attribution import Cause, Culprit
from pytest_ssdqual.qual.validity.drive_failure import FailedDrive
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding, Part

#: Claim about the drives that a measurement was to load, about the health of every drive of the run, and about the
#: drives' own self-tests.
FAILED, HEALTH, SELF_TEST = "failed_drives", "drive_health", "self_test"
#: Claims that judge no performance and no data.
OF_HEALTH = (HEALTH, SELF_TEST)
#: What the evidence has in the place of a workload.
LOAD, RUN = "load", "run"
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
        sentence=sentence, remarks=(*remarks_of(findings), *remarks),
        source=f"table health of {spec}: {SOURCE}", blames_drives=True,
    )  # fmt: skip


def remarks_of(findings: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield each finding with the serial number of its drive."""
    return (f"{serial}: {finding}" for serial, of_drive in findings.items() for finding in of_drive)


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
        cause=Cause(Culprit.DRIVE, findings[bad[0]][0], tuple(bad)) if bad and blames_drives else None,
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
