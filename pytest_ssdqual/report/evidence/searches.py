"""Evidence of workload searches; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_ssdqual.qual.explore.search import Probed, ProbedFigures, WorkloadSearch
from pytest_ssdqual.qual.spec.claims import Direction
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.evidence.evidence import About, Evidence, Figures, Finding, Part

#: Claim of a search without a confirmed fail: the number of workloads that passed.
PASSED_WORKLOADS = "passed_workloads"
OUTCOMES = {
    ProbedFigures.KEPT: Finding.PASS,
    ProbedFigures.BROKEN: Finding.FAIL,
    ProbedFigures.UNDECIDED: Finding.INCONCLUSIVE,
    ProbedFigures.TOO_SHORT: Finding.INCONCLUSIVE,
}


def of_search(search: WorkloadSearch, remarks: Sequence[str] = ()) -> Evidence:
    """Return the evidence of a search without a confirmed fail.

    Its figure is a count: the number of workloads that passed among those that were decided.
    """
    passed, inconclusive = search.counts[ProbedFigures.KEPT], len(search.open)
    margin = search.narrowest.margin_percent if search.narrowest else None
    found = Evidence(
        claim=PASSED_WORKLOADS,
        geometries=(str(search.geometry),),
        workloads=(str(search.space.plain),),
        value=passed,
        low=passed,
        high=passed + inconclusive,
        n=len(search.probed),
        unit=Unit.COUNT,
        limit=max(1, passed + inconclusive),
        direction=Direction.AT_LEAST,
        source=f"the promises of {search.spec}",
        outcome=Finding.PASS if search else Finding.INCONCLUSIVE,
        margin_percent=margin,
        sentence=search.sentence(),
        is_reading=True,
    )
    return _searched(found, search, remarks)


def of_confirmed(found: Evidence, search: WorkloadSearch, job_file: str, remarks: Sequence[str] = ()) -> Evidence:
    """Return the evidence of the second measurement, with the search that led to it."""
    whole = _searched(found, search, [*found.remarks, *remarks])
    return replace(whole, raw=(*found.raw, job_file), figures={**found.figures, **whole.figures})


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


def figures(search: WorkloadSearch) -> Figures:
    """Return the size of a search."""
    counts = search.counts
    return {
        "workloads_searched": len(search.probed),
        **{f"workloads_{look}": counts[look] for look in ProbedFigures},
        "search_seconds": search.seconds,
        "search_budget_seconds": search.budget.seconds,
        "confirming_seconds": search.confirming_s,
    }


def _point(probed: Probed) -> Part:
    # Not `if probed.worst_verdict`: a verdict that did not pass is falsy.
    margin = None if probed.worst_verdict is None else probed.worst_verdict.margin_percent
    return Part(
        str(probed.workload),
        {"margin_percent": margin, "seconds": probed.seconds},
        OUTCOMES.get(probed.look),
    )
