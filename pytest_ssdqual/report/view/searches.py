"""Searches for a workload that breaks a promise: the evidence that is kept of one, and the section about them; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from textwrap import wrap

from pytest_ssdqual.qual.explore.search import Probed, ProbedFigures, WorkloadSearch
from pytest_ssdqual.qual.spec.claims import Direction
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.evidence.evidence import About, Evidence, Figure, Finding, Part
from pytest_ssdqual.report.view.tables import COLOUR, INDENT, TextLine

#: What a search is about that found nothing: as many workloads keep their promises as were searched and decided.
KEPT_WORKLOADS = "kept_workloads"
OUTCOMES = {
    ProbedFigures.KEPT: Finding.PASS,
    ProbedFigures.BROKEN: Finding.FAIL,
    ProbedFigures.UNDECIDED: Finding.INCONCLUSIVE,
}


def of_search(search: WorkloadSearch, *, protocol: str, acceptance: bool, remarks: Sequence[str] = ()) -> Evidence:
    """Of one that found nothing, or nothing that could be confirmed.

    Its figure is a count, and a fact: how many of the workloads that could be decided keep their promises.
    """
    kept, open_ = search.counts[ProbedFigures.KEPT], len(search.open)
    margin = search.narrowest.margin_percent if search.narrowest else None
    found = Evidence(
        claim=KEPT_WORKLOADS,
        geometries=(str(search.geometry),),
        workloads=(str(search.space.plain),),
        value=kept,
        low=kept,
        high=kept + open_,
        n=len(search.probed),
        unit=Unit.COUNT,
        limit=max(1, kept + open_),
        direction=Direction.AT_LEAST,
        source=f"the promises of {search.spec}",
        outcome=Finding.PASS if search else Finding.INCONCLUSIVE,
        margin_percent=margin,
        sentence=search.sentence(),
        protocol=protocol,
        acceptance=acceptance,
        is_reading=True,
    )
    return _searched(found, search, remarks)


def of_confirmed(found: Evidence, search: WorkloadSearch, job_file: str, remarks: Sequence[str] = ()) -> Evidence:
    """Of one that found something: the evidence of the second measurement, and the search that led to it."""
    whole = _searched(found, search, [*found.remarks, *remarks])
    return replace(whole, raw=(*found.raw, job_file), figures=(*found.figures, *whole.figures))


def _searched(found: Evidence, search: WorkloadSearch, remarks: Sequence[str]) -> Evidence:
    narrow = search.narrowest
    closest = [f"closest to its limit was {narrow!r}"] if narrow and not search.confirmed else []
    return replace(
        found,
        about=About.SEARCH,
        group=search.sentence(),
        figures=figures(search),
        points=tuple(map(_point, search.probed)),
        remarks=(*search.remarks(), *closest, *remarks),
    )


def figures(search: WorkloadSearch) -> tuple[Figure, ...]:
    """How much was searched."""
    counts = search.counts
    return (
        Figure("workloads_searched", len(search.probed)),
        *(Figure(f"workloads_{look}", counts[look]) for look in ProbedFigures),
        Figure("search_seconds", search.seconds),
        Figure("search_budget_seconds", search.budget.seconds),
        Figure("confirming_seconds", search.confirming_s),
    )


def searches(evidence: Sequence[Evidence], width: int) -> Iterator[TextLine]:
    """A paragraph for each search."""
    for each in evidence:
        if each.about is not About.SEARCH:
            continue
        colour = (COLOUR[each.outcome], "bold") if each.outcome in COLOUR else ("bold",)
        for line in wrap(each.group, width, subsequent_indent=INDENT, break_on_hyphens=False):
            yield TextLine(line, colour)
        for remark in each.remarks:
            for line in wrap(remark, width - len(INDENT), subsequent_indent=INDENT, break_on_hyphens=False):
                yield TextLine(INDENT + line)
        yield TextLine("")


def _point(probed: Probed) -> Part:
    # A verdict is only true if it passed.
    margin = None if probed.told is None else probed.told.margin_percent
    return Part(
        str(probed.workload),
        (Figure("margin_percent", margin), Figure("seconds", probed.seconds)),
        OUTCOMES.get(probed.look),
    )
