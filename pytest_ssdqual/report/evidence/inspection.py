"""Evidence of the receiving inspection: reading, limit and answer of each drive; pure."""

from __future__ import annotations

from pytest_ssdqual.qual.inspection.checks import Answer, CheckedDrive, InspectionVerdict
from pytest_ssdqual.qual.spec.claims import Direction
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding, Part

#: Prefix of the claims, and the name in the place of a workload.
PREFIX, WORKLOAD = "inspected_", "inspection"
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
    deviating, unknown = (float(len(verdict.of(answer))) for answer in (Answer.DEVIATES, Answer.UNKNOWN))
    outcome = FINDINGS[verdict.answer]
    is_promised = outcome is not Finding.OBSERVED
    margin_percent = -100.0 if deviating else 0.0
    return Evidence(
        claim=f"{PREFIX}{verdict.check}",
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


def is_inspection(evidence: Evidence) -> bool:
    """Return whether the evidence is that of a check of the inspection."""
    return evidence.claim.startswith(PREFIX)


def _part(drive: CheckedDrive) -> Part:
    numbers = {"value": drive.value, "limit": drive.limit}
    figures = {name: float(number) for name, number in numbers.items() if number is not None}
    return Part(drive.drive, figures, FINDINGS[drive.answer], (), drive.reading, drive.bound, drive.path)
