"""Coverage of a run: how many tests and drives were judged, and the promises of which nothing was; pure.

The records ``tests_planned`` have the tests that the selected suites have, those that were left out (``-k``, ``-m``,
``--deselect``) included, and the claims that each declares. A test that cannot apply to these drives does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Self

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.names import counted
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.evidence.health import FAILED as FAILED_DRIVES
from pytest_ssdqual.report.evidence.health import OF_HEALTH
from pytest_ssdqual.report.run_folder.manifest import PlannedTests
from pytest_ssdqual.report.run_folder.reader import PLANNED, Judged, Record, RunReader
from pytest_ssdqual.report.run_summary.errors import ERROR, FAILED, PASSED, SKIPPED
from pytest_ssdqual.report.view.tables import label, parse_geometry

#: Key of the record of a skipped test that does not apply to these drives.
INAPPLICABLE = "inapplicable"
#: Names for tests without the mark ``ssd_promise``, by the fixture that they judge with.
GROUPS = {
    "discard": "ssd_discard",
    "erasure": "ssd_erasure",
    "inspection": "ssd_inspection",
    "integrity": "ssd_integrity",
    "power_cuts": "ssd_power_cuts",
    "read_back": "ssd_read_back",
    "search": "ssd_explore",
    "self_test": "ssd_self_test",
}
#: An array among the parameters of a test, in front of which may be a bay and parameters of the user's own.
ARRAY = re.compile(r"[\[-]raid(?:0|1|5|6|10)(?:x\d+)?[-\]]")
#: Claims about bare drives on which the limits of a suite's arrays rest.
REFERENCES = {"steady_iops"}
#: Kinds of records that name the members of an array.
OF_MEMBERS = ("purging", "array_planned")
#: Kinds of records that are read, beside those of tests.
KINDS = (PLANNED, *OF_MEMBERS)


@frozen
class HollowPromise:
    """A claim of a suite, or of several, that no test judged although it applies to these drives."""

    claim: str
    #: Folders of the suites; empty if no suite judged the claim.
    suites: tuple[str, ...]
    #: Number of its tests; 0 if none was selected.
    tests: int

    def __str__(self) -> str:
        name = label(self.claim)
        if not self.tests:
            return f"{name}: no test of it was selected"
        of = f" in {', '.join(self.suites)}" if self.suites else ""
        what = "its only test was not judged" if self.tests == 1 else f"none of {self.tests:,} tests judged"
        return f"{name}{of}: {what}"


@frozen
class Coverage:
    """The judged part of the selected suites and of the named drives."""

    #: Tests that passed, failed, or are bounded by something above the drives.
    tests_judged: int = 0
    #: Tests of the selected suites that apply to these drives.
    tests: int = 0
    drives_judged: int = 0
    drives: int = 0
    #: Identities of the drives that are not covered, and those of them that were inspected.
    untested: frozenset[str] = frozenset()
    inspected: frozenset[str] = frozenset()
    #: Claims of which nothing was judged: promised by the spec, and not; and what the run requires and did not judge.
    hollow: tuple[HollowPromise, ...] = ()
    unpromised: tuple[HollowPromise, ...] = ()
    missing: tuple[HollowPromise, ...] = ()
    #: Those of the tests that measured something without a limit, so that there was nothing to judge.
    unlimited: int = 0

    def __str__(self) -> str:
        """Return ``7 of 187 tests (3 more without a limit), 3 of 8 drives``."""
        tests, drives = counted(self.tests - self.unlimited, "test"), counted(self.drives, "drive")
        more = f" ({self.unlimited:,} more without a limit)" if self.unlimited else ""
        return f"{self.tests_judged:,} of {tests}{more}, {self.drives_judged:,} of {drives}"

    def __add__(self, other: Self) -> Coverage:
        """Return the coverage of both, without the names of drives and promises."""
        return Coverage(
            self.tests_judged + other.tests_judged,
            self.tests + other.tests,
            self.drives_judged + other.drives_judged,
            self.drives + other.drives,
            unlimited=self.unlimited + other.unlimited,
        )

    @property
    def is_partial(self) -> bool:
        """Whether tests of the selected suites that have a limit, or drives, were not judged."""
        return self.tests_judged < self.tests - self.unlimited or self.drives_judged < self.drives

    def untested_as(self, identity: str) -> str:
        """Return ``not tested`` or ``only inspected``; empty for a drive that is covered."""
        if identity in self.inspected:
            return "only inspected"
        return "not tested" if identity in self.untested else ""

    @property
    def facts(self) -> dict[str, int]:
        """The numbers by the names that properties and metrics have."""
        return {
            "tests_judged": self.tests_judged,
            "tests_all": self.tests,
            "tests_without_limit": self.unlimited,
            "drives_judged": self.drives_judged,
            "drives_all": self.drives,
        }


@frozen
class _Test:
    """The end of a test over all sessions."""

    #: Claims and groups of its verdicts, inconclusive ones included, bounded ones not.
    judged: frozenset[str]
    #: Passed, failed, or bounded by something above the drives.
    is_decided: bool
    #: It has only figures without a limit, and no record of an end, as a test with a verdict has none.
    is_unlimited: bool
    #: Another sentence says why it has no verdict on a claim: an error, an inconclusive verdict, a drive that failed.
    is_explained: bool
    #: It was skipped, as it does not apply to these drives.
    is_inapplicable: bool


def coverage(story: RunReader, judged: Sequence[Judged]) -> Coverage:
    """Return the coverage of a run. Its manifest has the claims that it requires; null: all of the selected tests."""
    collections = tuple(story.contents(PlannedTests, PLANNED))
    planned = {test: claims for each in collections for test, claims in zip(each.tests, each.claims, strict=True)}
    left_out = {test for each in collections for test in each.left_out}
    ends = _ends(story, judged)
    # Reports of tests that need no drives are recorded, too.
    applying = [test for test in planned if not _is_inapplicable(test, ends)]
    drives = story.manifest.serials
    loaded, inspected = _drives(story, judged, drives)
    seen = loaded or inspected
    empty = tuple(_hollow(planned, ends))
    promised = {claim for each in collections for claim in each.promised}
    hollow = tuple(each for each in empty if each.claim in promised)
    required = story.manifest.required_claims
    missing = hollow if required is None else _missing(required, planned, ends)
    return Coverage(
        tests_judged=sum(test in ends and ends[test].is_decided for test in applying),
        tests=len(applying) + len(left_out.difference(planned)),
        unlimited=sum(test in ends and ends[test].is_unlimited for test in applying),
        drives_judged=len(seen),
        drives=len(drives),
        untested=frozenset(drives.keys() - seen),
        inspected=frozenset(inspected - seen),
        hollow=hollow,
        unpromised=tuple(each for each in empty if each.claim not in promised),
        missing=tuple(missing),
    )


def _ends(story: RunReader, judged: Sequence[Judged]) -> dict[str, _Test]:
    verdicts: dict[str, list[Evidence]] = {}
    for each in judged:
        verdicts.setdefault(each.test, []).append(each)
    last = {record.test: record for record in story.of(ERROR, FAILED, PASSED, SKIPPED) if not record.is_of_session}
    return {test: _end(verdicts.get(test, ()), last.get(test)) for test in {**verdicts, **last}}


def _end(evidence: Sequence[Evidence], last: Record | None) -> _Test:
    promised = [each for each in evidence if each.is_promised]
    kind, facts = (last.kind, last.facts) if last else ("", {})
    outcomes = {each.outcome for each in promised}
    return _Test(
        judged=frozenset(
            name for each in promised if each.outcome is not Finding.BOUNDED for name in (each.claim, each.group)
        ),
        is_decided=bool(outcomes & {Finding.PASS, Finding.FAIL, Finding.BOUNDED}) or kind in (PASSED, FAILED),
        is_unlimited=bool(evidence) and not (promised or kind or any(each.is_unjudged for each in evidence)),
        is_explained=(
            kind in (ERROR, FAILED)
            or bool(outcomes & {Finding.INCONCLUSIVE, Finding.BOUNDED})
            or any(each.claim == FAILED_DRIVES for each in promised)
        ),
        is_inapplicable=kind == SKIPPED and facts.get(INAPPLICABLE) is True and not evidence,
    )


def _drives(story: RunReader, judged: Sequence[Judged], drives: Mapping[str, str]) -> tuple[set[str], set[str]]:
    """Return the identities of the drives that a judged test loaded, and of those that were inspected."""
    by_name = {serial: identity for identity, serial in drives.items()}
    members: dict[str, set[str]] = {}
    for record in story.of(*OF_MEMBERS):
        of_array = members.setdefault(record.fact("geometry", str, ""), set())
        of_array.update(record.fact("members", tuple[str, ...], ()))
    loaded, inspected = set[str](), set[str]()
    for evidence in (one for one in judged if one.is_promised and one.claim not in OF_HEALTH):
        named = {by_name.get(part.name, part.name) for part in evidence.members}
        if evidence.is_inspection:
            inspected |= named
            continue
        loaded |= named
        is_of_all = not named or evidence.claim == FAILED_DRIVES  # which names those that failed
        for geometry in evidence.geometries if is_of_all else ():
            first = list(drives)[: parse_geometry(geometry)[2]]
            loaded |= members.get(geometry) or set(first)
    return loaded & drives.keys(), inspected & drives.keys()


def _hollow(planned: Mapping[str, Sequence[str]], ends: Mapping[str, _Test]) -> Iterator[HollowPromise]:
    """Yield the promises of which no test was judged; those of a claim that no suite judged are one.

    A suite of which no test applies is hollow: drives too few for any of its arrays do not make it green, not even if
    they reach the published maxima on which the limits of these arrays would rest.
    """
    of_claim: dict[str, dict[str, list[str]]] = {}
    with_arrays = {_suite(test) for test in planned if _is_of_array(test)}
    applying = set()
    for test, claims in planned.items():
        is_reference = _suite(test) in with_arrays and not _is_of_array(test)
        if set(claims) - (REFERENCES if is_reference else set()) and not _is_inapplicable(test, ends):
            applying.add(_suite(test))
    for test, claims in planned.items():
        if not _is_inapplicable(test, ends) or _suite(test) not in applying:
            for claim in claims:
                of_claim.setdefault(claim, {}).setdefault(_suite(test), []).append(test)
    for claim, suites in of_claim.items():
        empty = {suite: tests for suite, tests in suites.items() if _is_hollow(claim, tests, ends)}
        if empty:
            partial = tuple(empty) if len(empty) < len(suites) else ()
            yield HollowPromise(claim, partial, sum(map(len, empty.values())))


def _missing(
    required: Iterable[str], planned: Mapping[str, Sequence[str]], ends: Mapping[str, _Test]
) -> Iterator[HollowPromise]:
    """Yield the required claims that no test judged, whatever the reason."""
    for claim in required:
        tests = [test for test, claims in planned.items() if claim in claims]
        if not any(_is_judged(claim, test, ends) for test in tests):
            yield HollowPromise(claim, (), len(tests))


def _suite(test: str) -> str:
    """Return the folder of a test's file."""
    return test.partition("::")[0].rpartition("/")[0]


def _is_of_array(test: str) -> bool:
    """Return whether an array is a parameter of a test, or a level of which none can be built."""
    return ARRAY.search(test) is not None


def _is_inapplicable(test: str, ends: Mapping[str, _Test]) -> bool:
    return test in ends and ends[test].is_inapplicable


def _is_judged(claim: str, test: str, ends: Mapping[str, _Test]) -> bool:
    found = ends[test].judged if test in ends else ()
    return claim in found or (claim in GROUPS and bool(found))


def _is_hollow(claim: str, tests: Sequence[str], ends: Mapping[str, _Test]) -> bool:
    """Return whether all tests of a claim ended without a verdict on it, and no other sentence says why."""
    is_explained = any(test not in ends or ends[test].is_explained for test in tests)
    return not is_explained and not any(_is_judged(claim, test, ends) for test in tests)
