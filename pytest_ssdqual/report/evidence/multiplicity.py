"""All verdicts of a run together: expected number of false ones, and failures upheld by false discovery control."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.names import counted, named
from pytest_ssdqual.qual.stats.estimate import format_confidence
from pytest_ssdqual.qual.verdict import multiplicity
from pytest_ssdqual.qual.verdict.multiplicity import ErrorControl
from pytest_ssdqual.report.evidence.evidence import About, Evidence, Finding

#: Name of the figure with the p-value of a failed verdict or drive.
P_VALUE = "p_value"
#: Maximum number of failures named in the summary.
NAMED = 5


@frozen
class FailedClaim:
    """A claim that failed, of a single drive if drives were judged one by one."""

    test: str
    claim: str
    #: Serial number; empty if the claim is not about a single drive.
    drive: str
    p_value: float

    def __str__(self) -> str:
        return f"{self.test} (drive {self.drive})" if self.drive else self.test


@frozen
class FailureRecord(FailedClaim):
    """A failed claim in the manifest, with the results of both procedures."""

    upheld_benjamini_hochberg: bool
    upheld_benjamini_yekutieli: bool


@frozen
class FamilyRecord:
    """The tally of a run in its manifest."""

    control: str
    claims_planned: int
    confidence: float
    claims_judged: int
    readings: int
    expected_false_failures: float
    expected_false_passes: float
    failures: tuple[FailureRecord, ...]

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise ValueError(f"a confidence is between 0 and 1, not {self.confidence:g}")
        self.error_control  # noqa: B018 (refuses what is no family)

    @property
    def error_control(self) -> ErrorControl:
        return ErrorControl(self.claims_planned, self.control)


@frozen
class ClaimTally:
    """Verdicts of a run. Readings are facts about the run without a statistical error, and are not counted."""

    family: ErrorControl
    #: Two-sided confidence of the protocol.
    confidence: float
    protocol: str
    judged: int
    readings: int
    failures: tuple[FailedClaim, ...]

    @property
    def level(self) -> float:
        return 1 - self.confidence

    @property
    def false_failures(self) -> float:
        """Expected number if every product were exactly on its limit."""
        return self.family.false_failures(self.judged, self.confidence)

    @property
    def false_passes(self) -> float:
        return self.family.false_passes(self.judged, self.confidence)

    @property
    def upheld(self) -> tuple[bool, ...]:
        """Result of Benjamini & Hochberg's procedure for each failure."""
        return multiplicity.benjamini_hochberg([each.p_value for each in self.failures], self.level, self.judged)

    @property
    def upheld_however_dependent(self) -> tuple[bool, ...]:
        """Result of Benjamini & Yekutieli's procedure, which is valid for dependent claims, too."""
        return multiplicity.benjamini_yekutieli([each.p_value for each in self.failures], self.level, self.judged)

    def to_record(self) -> FamilyRecord:
        """Return the entry of the manifest."""
        tests = zip(self.failures, self.upheld, self.upheld_however_dependent, strict=True)
        return FamilyRecord(
            control=self.family.control,
            claims_planned=self.family.claims,
            confidence=self.confidence,
            claims_judged=self.judged,
            readings=self.readings,
            expected_false_failures=self.false_failures,
            expected_false_passes=self.false_passes,
            failures=tuple(FailureRecord(*astuple(failed), *upheld) for failed, *upheld in tests),
        )


def tally(
    found: Sequence[tuple[str, Evidence]], planned: ErrorControl, confidence: float, protocol: str
) -> ClaimTally | None:
    """Return the tally of a run's evidence, given with the ids of its tests; None if nothing was judged.

    Each drive that was judged counts. Of a test that was run again the last result counts.
    """
    last = {(test, each.identity): (test, each) for test, each in found if each.is_promised}
    tests = list(last.values())
    judged = sum(_claims(each) for _, each in tests if not each.is_reading)
    readings = sum(_claims(each) for _, each in tests if each.is_reading)
    if not judged + readings:
        return None
    failures = tuple(failure for test, each in tests for failure in _failures(test, each))
    return ClaimTally(planned, confidence, protocol, judged, readings, failures)


def lines(found: ClaimTally) -> list[str]:
    """Return the sentences for the summary."""
    sentences = []
    if found.judged:
        sentences.append(_expected(found))
    if found.readings:
        several = found.readings > 1
        sentences.append(
            f"{found.readings:,} more {'are' if several else 'is'} decided by what was read or by a sampling plan, "
            "which has no such error"
        )
    if found.family.is_corrected and found.judged > found.family.claims:
        sentences.append(
            f"only {found.family.claims:,} claims were planned when the run began: for more than those the family-wise "
            "confidence does not hold"
        )
    if found.failures:
        sentences.append(_upheld(found))
    return sentences


def properties(found: ClaimTally) -> list[tuple[str, str]]:
    """Return properties of the ``<testsuite>`` of a JUnit file; numbers are plain."""
    return [
        ("family.control", found.family.control),
        ("family.claims_planned", str(found.family.claims)),
        ("family.claims_judged", str(found.judged)),
        ("family.expected_false_failures", f"{found.false_failures:.6g}"),
        ("family.expected_false_passes", f"{found.false_passes:.6g}"),
        ("family.failures", str(len(found.failures))),
        ("family.failures_upheld_benjamini_hochberg", str(sum(found.upheld))),
        ("family.failures_upheld_benjamini_yekutieli", str(sum(found.upheld_however_dependent))),
    ]


def _expected(found: ClaimTally) -> str:
    control = found.family.control
    if found.family.is_corrected:
        control = f"{control}, of failures, over {found.family.claims:,} planned promises"
    promises = f"{counted(found.judged, 'promise')} judged at {format_confidence(found.confidence)}"
    return (
        f"{promises}: of drives exactly on every limit, "
        f"{_number(found.false_failures)} would fail and {_number(found.false_passes)} would pass by chance; "
        f"correction for the number of promises: {control} (protocol {found.protocol})"
    )


def _upheld(found: ClaimTally) -> str:
    count = len(found.failures)
    upheld = (
        "failures that hold if all are judged together (Benjamini-Hochberg at "
        f"{format_confidence(found.level)}): {sum(found.upheld)} of {count}"
    )
    dropped = [str(each) for each, upheld in zip(found.failures, found.upheld, strict=True) if not upheld]
    return f"{upheld}; chance may explain {named(dropped, NAMED)}" if dropped else upheld


def _claims(each: Evidence) -> int:
    """Return the number of drives that were judged one by one, or 1 for a claim about all, such as a lot."""
    return 1 if each.about is About.LOT else sum(part.outcome is not None for part in each.members) or 1


def _failures(test: str, each: Evidence) -> Iterable[FailedClaim]:
    if each.is_reading:
        return
    alone = [part for part in each.members if part.outcome is not None]
    if not alone:
        p_value = each.figures.get(P_VALUE)
        if each.outcome is Finding.FAIL and p_value is not None:
            yield FailedClaim(test, each.claim, "", p_value)
    for part in alone:
        p_value = part.figures.get(P_VALUE)
        if part.outcome is Finding.FAIL and p_value is not None:
            yield FailedClaim(test, each.claim, part.name, p_value)


def _number(count: float) -> str:
    """``6.6``, ``0.025``, ``1,320``."""
    return f"{count:.2g}" if count < 100 else f"{count:,.0f}"
