"""What the selected tests ask of each measurement, and whether that is known yet: when measuring may end.

The rule of the module: it judges by the very code that the test judges by afterwards, so that nothing is ended that
the test then finds undecided, and nothing goes on that it would have decided.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import CodeType

import pytest

from pytest_ssdqual.plugin import needs
from pytest_ssdqual.plugin.account import Place
from pytest_ssdqual.qual import sequential
from pytest_ssdqual.qual.claim import OF_TAIL, Claim, Scope
from pytest_ssdqual.qual.estimate import Estimate, Sureness, TooFew
from pytest_ssdqual.qual.family import ALONE, Family
from pytest_ssdqual.qual.geometry import Geometry
from pytest_ssdqual.qual.measurement import Measured
from pytest_ssdqual.qual.protocol import Protocol, SequentialRule
from pytest_ssdqual.qual.rates import iops
from pytest_ssdqual.qual.spec import Spec
from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.qual.verdict import Outcome, Verdict, judge_members
from pytest_ssdqual.qual.workload import Workload
from pytest_ssdqual.rig.sequential import Decision

#: Claims about one measurement; of the others a single measurement decides nothing.
OF_ONE = (Scope.RUN, Scope.MEMBERS)
ALL = frozenset(claim for claim in Claim if claim.scope in OF_ONE)

NAMES = frozenset(claim.value for claim in Claim)

#: The claims of each measurement that tests ask for.
Asked = Mapping[tuple[Geometry, Workload], frozenset[Claim]]


def asked(items: Iterable[pytest.Item]) -> Asked:
    """By the names of claims in the code of each test and in its parameters; every claim if it has none of them."""
    found: dict[tuple[Geometry, Workload], frozenset[Claim]] = {}
    for item in items:
        need = needs.of(item)
        if not need.measured or item.get_closest_marker("skip"):
            continue
        named = frozenset(_named(item)) or ALL
        for geometry in need.geometries:
            for workload in need.measured:
                found[geometry, workload] = found.get((geometry, workload), frozenset()) | named
    return found


def tails(wanted: Asked, spec: Spec) -> frozenset[Workload]:
    """Workloads of which a percentile of the tail is asked for and promised, on one array at least.

    By workload, not by array: widths are compared with each other, and a maximum grows with the time it is watched.
    """
    return frozenset(
        workload
        for (geometry, workload), claims in wanted.items()
        if any(spec.is_promised(claim, geometry, workload) for claim in claims & OF_TAIL)
    )


@dataclass(frozen=True, slots=True)
class Promises:
    """``rig.sequential``'s question at each look; see ``__call__``."""

    spec: Spec
    protocol: Protocol
    asked: Asked
    family: Family = ALONE

    def __call__(self, measured: Measured) -> Decision:
        """Whether the verdict on every claim that is asked for is settled.

        Of what no limit decides by this measurement alone (relations, sweeps, series, unpromised figures, references),
        whether its IOPS are known as precisely as the protocol wants. Of drives side by side all of them.
        """
        # What nobody asks for by itself is what a promise compares with.
        claims = self.asked.get((measured.geometry, measured.workload), frozenset())
        place = Place.of(measured)
        limits = {
            claim: limit
            for claim in sorted(claims)
            if claim.scope in OF_ONE and (limit := self.spec.limit(claim, place.geometry, place.workload))
        }
        rule, open_ends = self.protocol.verdict, list[str]()
        told = ""
        for claim, limit in limits.items():
            try:
                verdicts = judge_members(
                    claim, measured, limit, rule.confidence, rule.indifference_percent, self.family
                )
            except TooFew as error:
                open_ends.append(f"{claim.label}: {error}")
                continue
            except ValueError:
                continue  # time will not make it fit to be judged; the test says why
            told = told or _told(verdicts[0])
            open_ends += [_told(each) for each in verdicts if not each.is_settled]
            open_ends += [f"{_told(each)} (too early)" for each in verdicts if self._is_too_early(each, measured)]
        looks = self.protocol.sequential
        if looks and (not limits or self._is_figure_wanted(claims, place, limits)):
            known, precision = _precision(measured, looks, Sureness(rule.confidence))
            told = told or precision
            open_ends += [] if known else [precision]
        return _decision(open_ends, told)

    def _is_too_early(self, verdict: Verdict, measured: Measured) -> bool:
        """Whether a decided verdict may be that on a plateau; not at the last look, which has to do."""
        looks, look = self.protocol.sequential, measured.look
        if looks is None or look is None or look.number == look.of or verdict.estimate.is_reading:
            return False
        seconds = sequential.look_times(looks)[look.number - 1]
        decided = verdict.outcome is not Outcome.INCONCLUSIVE
        return decided and sequential.is_too_early(seconds, verdict.estimate.value, verdict.limit.bound, looks)

    def _is_figure_wanted(self, claims: AbstractSet[Claim], place: Place, limits: Container[Claim]) -> bool:
        """Whether a claim needs figures of this measurement that no limit says how precise they have to be."""
        if any(claim.scope not in OF_ONE for claim in claims):
            return True
        # Of every claim, those that nothing is promised of are wanted by nobody.
        named = (
            (claim for claim in claims if claim not in limits)
            if not claims >= ALL
            else (claim for claim in claims if self._is_relative(claim, place))
        )
        return any(named)

    def _is_relative(self, claim: Claim, place: Place) -> bool:
        """Whether its limit is in per cent of another figure, of this run or of the baseline."""
        where = claim, place.geometry, place.workload
        return bool(self.spec.relation(*where) or self.spec.of_baseline(*where))


def _decision(open_ends: list[str], told: str) -> Decision:
    if not open_ends:
        return Decision(done=True, told=told)
    others = len(open_ends) - 1
    return Decision(done=False, told=open_ends[0] + (f", and {others} more open" if others else ""))


def _precision(measured: Measured, rule: SequentialRule, sure: Sureness) -> tuple[bool, str]:
    """Whether the IOPS are known well enough; of drives side by side those of each."""
    found: list[Estimate] = []
    for each in measured.of_members():
        try:
            found.append(iops(each, sure))
        except TooFew as error:
            return False, f"IOPS: {error}"
    widest = max(found, key=_half_width_percent)
    half = _half_width_percent(widest)
    return half <= rule.precision_percent, f"{widest}, ±{half:.2g} % ({rule.precision_percent:g} % is wanted)"


def _half_width_percent(estimate: Estimate) -> float:
    return 50 * (estimate.high - estimate.low) / estimate.value if estimate.value else float("inf")


def _told(verdict: Verdict) -> str:
    unit = verdict.claim.unit if verdict.reference is None else Unit.PERCENT
    by = f" of drive {verdict.subject.drive}" if verdict.subject.drive else ""
    return f"{verdict.claim.label}{by} {verdict.estimate}, limit {format_value(verdict.limit.bound, unit)}"


def _named(item: pytest.Item) -> Iterator[Claim]:
    code = getattr(getattr(item, "function", None), "__code__", None)
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    for text in [*_texts(code), *_texts(tuple(parameters.values()))]:
        if text in NAMES:
            yield Claim(text)


def _texts(constant: object) -> Iterator[str]:
    """Texts among constants, however deep: in tuples and sets, and in the code of functions inside of functions."""
    if isinstance(constant, str):
        yield constant
    elif isinstance(constant, CodeType):
        yield from _texts(constant.co_consts)
    elif isinstance(constant, tuple | frozenset | list | set):
        for each in constant:
            yield from _texts(each)
