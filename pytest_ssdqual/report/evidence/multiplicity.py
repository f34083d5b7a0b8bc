"""All verdicts of a run together: expected number of false ones, and failures upheld by false discovery control."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
    """A claim that failed, of a single drive if drives were judged one by one.

    It is upheld by a procedure if it also holds when all verdicts are judged together.
    """

    test: str
    claim: str
    #: Serial number; empty if the claim is not about a single drive.
    drive: str
    p_value: float
    upheld_benjamini_hochberg: bool
    #: This procedure is valid for dependent claims, too.
    upheld_benjamini_yekutieli: bool

    def __str__(self) -> str:
        return f"{self.test} (drive {self.drive})" if self.drive else self.test


@frozen
class FamilyRecord:
    """The tally of a run, as its manifest has it.

    Readings are facts about the run without a statistical error, and are not among the claims.
    """

    control: str
    claims_planned: int
    #: Two-sided confidence of the protocol.
    confidence: float
    claims_judged: int
    readings: int
    #: Expected number if every product were exactly on its limit.
    expected_false_failures: float
    expected_false_passes: float
    failures: tuple[FailedClaim, ...]

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise ValueError(f"a confidence is between 0 and 1, not {self.confidence:g}")
        self.error_control  # noqa: B018 (refuses what is no family)

    @property
    def error_control(self) -> ErrorControl:
        return ErrorControl(self.claims_planned, self.control)


def tally(found: Sequence[tuple[str, Evidence]], planned: ErrorControl, confidence: float) -> FamilyRecord | None:
    """Return the tally of a run's evidence, given with the ids of its tests; None if nothing was judged.

    Each drive that was judged counts. Of a test that was run again the last result counts.
    """
    last = {(test, each.identity): (test, each) for test, each in found if each.is_promised}
    tests = list(last.values())
    judged = sum(_claims(each) for _, each in tests if not each.is_reading)
    readings = sum(_claims(each) for _, each in tests if each.is_reading)
    if not judged + readings:
        return None
    failed = [failure for test, each in tests for failure in _failures(test, each)]
    p_values = [p_value for *_, p_value in failed]
    upheld = multiplicity.benjamini_hochberg(p_values, 1 - confidence, judged)
    however_dependent = multiplicity.benjamini_yekutieli(p_values, 1 - confidence, judged)
    return FamilyRecord(
        control=planned.control,
        claims_planned=planned.claims,
        confidence=confidence,
        claims_judged=judged,
        readings=readings,
        expected_false_failures=planned.false_failures(judged, confidence),
        expected_false_passes=planned.false_passes(judged, confidence),
        failures=tuple(
            FailedClaim(*failure, *results) for failure, *results in zip(failed, upheld, however_dependent, strict=True)
        ),
    )


def lines(family: FamilyRecord, protocol: str) -> list[str]:
    """Return the sentences for the summary; ``protocol`` is the name of the run's."""
    sentences = []
    if family.claims_judged:
        sentences.append(_expected(family, protocol))
    if family.readings:
        several = family.readings > 1
        sentences.append(
            f"{family.readings:,} more {'are' if several else 'is'} decided by what was read or by a sampling plan, "
            "which has no such error"
        )
    if family.error_control.is_corrected and family.claims_judged > family.claims_planned:
        sentences.append(
            f"only {family.claims_planned:,} claims were planned when the run began: for more than those the "
            "family-wise confidence does not hold"
        )
    if family.failures:
        sentences.append(_upheld(family))
    return sentences


def properties(family: FamilyRecord) -> list[tuple[str, str]]:
    """Return properties of the ``<testsuite>`` of a JUnit file; numbers are plain."""
    upheld = sum(each.upheld_benjamini_hochberg for each in family.failures)
    however_dependent = sum(each.upheld_benjamini_yekutieli for each in family.failures)
    return [
        ("family.control", family.control),
        ("family.claims_planned", str(family.claims_planned)),
        ("family.claims_judged", str(family.claims_judged)),
        ("family.expected_false_failures", f"{family.expected_false_failures:.6g}"),
        ("family.expected_false_passes", f"{family.expected_false_passes:.6g}"),
        ("family.failures", str(len(family.failures))),
        ("family.failures_upheld_benjamini_hochberg", str(upheld)),
        ("family.failures_upheld_benjamini_yekutieli", str(however_dependent)),
    ]


def _expected(family: FamilyRecord, protocol: str) -> str:
    control = family.control
    if family.error_control.is_corrected:
        control = f"{control}, of failures, over {family.claims_planned:,} planned promises"
    promises = f"{counted(family.claims_judged, 'promise')} judged at {format_confidence(family.confidence)}"
    return (
        f"{promises}: of drives exactly on every limit, "
        f"{_number(family.expected_false_failures)} would fail and {_number(family.expected_false_passes)} would pass "
        f"by chance; correction for the number of promises: {control} (protocol {protocol})"
    )


def _upheld(family: FamilyRecord) -> str:
    dropped = [str(failed) for failed in family.failures if not failed.upheld_benjamini_hochberg]
    count = len(family.failures)
    upheld = (
        "failures that hold if all are judged together (Benjamini-Hochberg at "
        f"{format_confidence(1 - family.confidence)}): {count - len(dropped)} of {count}"
    )
    return f"{upheld}; chance may explain {named(dropped, NAMED)}" if dropped else upheld


def _claims(each: Evidence) -> int:
    """Return the number of drives that were judged one by one, or 1 for a claim about all, such as a lot."""
    return 1 if each.about is About.LOT else sum(part.outcome is not None for part in each.members) or 1


def _failures(test: str, evidence: Evidence) -> Iterable[tuple[str, str, str, float]]:
    """Yield test, claim, drive and p-value of each claim that failed."""
    if evidence.is_reading:
        return
    alone = [part for part in evidence.members if part.outcome is not None]
    if not alone:
        p_value = evidence.figures.get(P_VALUE)
        if evidence.outcome is Finding.FAIL and p_value is not None:
            yield test, evidence.claim, "", p_value
    for part in alone:
        p_value = part.figures.get(P_VALUE)
        if part.outcome is Finding.FAIL and p_value is not None:
            yield test, evidence.claim, part.name, p_value


def _number(count: float) -> str:
    """``6.6``, ``0.025``, ``1,320``."""
    return f"{count:.2g}" if count < 100 else f"{count:,.0f}"
