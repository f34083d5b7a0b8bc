"""A search as it went: every workload that it looked at, in order, and which were steps to a simpler one; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from pytest_ssdqual.qual.explore.dimensions import Space
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts.data import Notes
from pytest_ssdqual.report.evidence.evidence import About
from pytest_ssdqual.report.evidence.part import Finding
from pytest_ssdqual.report.run_folder.story import Judged, Story

#: How a workload came to be looked at.
DRAWN, KNOWN, TRIED, SHORTER = "drawn", "known from an earlier run", "a simpler one tried", "simpler and broken too"


@dataclass(frozen=True, slots=True)
class Tried:
    """One workload that was looked at."""

    name: str
    #: Of the drives' time, when the look at it had ended.
    at_s: float
    #: Of the promise that it is closest to breaking, or breaks most; positive is better than promised.
    margin_percent: float | None
    outcome: Finding | None
    step: str
    #: What sets it apart from the plainest; None if the record does not tell.
    departures: tuple[str, ...] | None
    #: Its worst verdict, or why there is none.
    told: str


@dataclass(frozen=True, slots=True)
class Searched:
    """One search."""

    judged: Judged
    tried: tuple[Tried, ...]
    #: Workloads that were measured anew, and what came of them.
    suspects: Mapping[str, str]


def searched(notes: Notes) -> Iterator[Searched]:
    """Of every search that was judged."""
    for each in notes.judged:
        if each.evidence.about is About.SEARCH and (found := of_search(notes.story, each)):
            yield found


def of_search(story: Story, judged: Judged) -> Searched | None:
    """None if nothing was looked at."""
    points = judged.evidence.points
    if not points:
        return None
    facts = _record(story, judged)
    looks = {str(each.get("workload")): each for each in _tables(facts.get("probed"))}
    known = {str(each) for each in _listed(facts.get("began_with"))}
    ends = accumulate(max(point.figure("seconds") or 0.0, 0.0) for point in points)
    order = _Order.of(str(facts.get("plain", "")))
    tried = []
    for point, at_s in zip(points, ends, strict=True):
        look = looks.get(point.name, {})
        trouble = [str(each) for each in _listed(look.get("trouble"))]
        told = str(look.get("told") or "; ".join(trouble))
        step = order.step(point.name, is_known=point.name in known, is_broken=point.outcome is Finding.FAIL)
        margin, departures = point.figure("margin_percent"), order.departures(point.name)
        tried.append(Tried(point.name, at_s, margin, point.outcome, step, departures, told))
    return Searched(judged, tuple(tried), dict(_suspects(facts)))


@dataclass(slots=True)
class _Order:
    """What is simpler than what, as far as the search's space can be known."""

    space: Space | None
    #: Of the simplest that looked broken so far.
    least: tuple[int, int, tuple[int, ...]] | None = None

    @classmethod
    def of(cls, plain: str) -> _Order:
        try:
            return cls(Space.of(Workload.parse(plain)))
        except ValueError:
            return cls(None)

    def departures(self, name: str) -> tuple[str, ...] | None:
        try:
            return self.space.departures(Workload.parse(name)) if self.space else None
        except ValueError:
            return None

    def step(self, name: str, *, is_known: bool, is_broken: bool) -> str:
        """In words; of names that cannot be read only that they were drawn."""
        try:
            here = self.space.complexity(Workload.parse(name)) if self.space else None
        except ValueError:
            here = None
        is_simpler = here is not None and self.least is not None and here < self.least
        if here is not None and is_broken and (self.least is None or is_simpler):
            self.least = here
        if is_known:
            return KNOWN
        return (SHORTER if is_broken else TRIED) if is_simpler else DRAWN


def _record(story: Story, judged: Judged) -> Mapping[str, Any]:
    """The last ``searched`` record with the same workloads; empty if there is none."""
    names = [point.name for point in judged.evidence.points]
    for record in reversed(story.of("searched")):
        probed = [str(each.get("workload")) for each in _tables(record.facts.get("probed"))]
        if record.facts.get("geometry") in judged.evidence.geometries and probed == names:
            return record.facts
    return {}


def _suspects(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for each in _tables(facts.get("suspects")):
        what = "confirmed" if each.get("confirmed") is True else "cleared" if each.get("cleared") is True else "open"
        yield str(each.get("workload")), what


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _tables(value: object) -> list[Mapping[str, Any]]:
    return [each for each in _listed(value) if isinstance(each, dict)]
