"""Evidence of the receiving inspection: reading, limit and answer of each drive; pure."""

from __future__ import annotations

from dataclasses import replace

from pytest_ssdqual.qual.inspection.checks import Answer, CheckedDrive, InspectionVerdict
from pytest_ssdqual.report.evidence import health
from pytest_ssdqual.report.evidence.evidence import INSPECTED, Evidence, Finding, Part

FINDINGS = {
    Answer.CONFORMS: Finding.PASS,
    Answer.DEVIATES: Finding.FAIL,
    Answer.UNKNOWN: Finding.INCONCLUSIVE,
    Answer.UNLIMITED: Finding.OBSERVED,
    Answer.ABSENT: Finding.OBSERVED,
}


def of_inspection(verdict: InspectionVerdict, *, source: str, raw: tuple[str, ...] = ()) -> Evidence:
    """Return the evidence of one check, whose parts are the drives; its figure counts those that deviate.

    Drives whose value is unknown widen the interval: they may deviate, too.
    """
    deviating, unknown = (len(verdict.of(answer)) for answer in (Answer.DEVIATES, Answer.UNKNOWN))
    outcome, drives = FINDINGS[verdict.answer], verdict.drives
    evidence = health.none_allowed(
        f"{INSPECTED}{verdict.check}", f"drivex{len(drives)}", "inspection", deviating, len(drives),
        source=source, sentence=verdict.sentence,
    )  # fmt: skip
    if outcome is Finding.OBSERVED:
        evidence = replace(evidence, limit=None, source="", margin_percent=None)
    return replace(
        evidence,
        high=float(deviating + unknown),
        outcome=outcome,
        figures={"deviating_drives": deviating, "unknown_drives": unknown},
        raw=raw,
        members=tuple(map(_part, drives)),
    )


def _part(drive: CheckedDrive) -> Part:
    numbers = {"value": drive.value, "limit": drive.limit}
    figures = {name: float(number) for name, number in numbers.items() if number is not None}
    return Part(drive.drive, figures, FINDINGS[drive.answer], (), drive.reading, drive.bound, drive.path)
