"""Table of all promises and table of figures without a promise; condensed if there are thousands; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.run_folder.reader import Judged
from pytest_ssdqual.report.view.tables import SEVERITY, Table, TableRow, bounded, label, parse_geometry, sorting, span

#: With more promises than this, a row stands for all verdicts of one claim on one level.
MOST_ROWS = 300
RECORDS = "all of them are in records.jsonl"
SINGLE = ("Promise", "Array", "Workload", "Measured", "Interval", "Limit", "Margin", "Outcome")
GROUPED = ("Promise", "Array", "Workloads", "Judged", "Pass", "Fail", "Undecided", "Closest to the limit", "Outcome")


def promised(judged: Sequence[Judged], most_rows: int = MOST_ROWS) -> Table:
    """Return a row for each promise; of more than ``most_rows``, for each claim of each level."""
    found = sorted((each.evidence for each in judged if each.evidence.is_promised), key=sorting)
    if len(found) <= most_rows:
        rows: list[TableRow] = [single(each) for each in sorted(found, key=_severity)]
        return Table(SINGLE, tuple(rows), f"Promises: {len(found):,}")
    groups = sorted(_groups(found), key=lambda group: min(map(_severity, group)))
    note = f"A row stands for all verdicts of one claim on one level ({len(found):,} in all): {RECORDS}."
    return Table(GROUPED, tuple(map(_grouped, groups)), f"Promises: {len(found):,}, by claim and level", note)


def observed(judged: Sequence[Judged]) -> Table:
    """Return the figures without a promise."""
    found = sorted((each.evidence for each in judged if not each.evidence.is_promised), key=sorting)
    title = f"Figures without a promise: {len(found):,}"
    rows: list[TableRow]
    if len(found) <= MOST_ROWS:
        rows = [(label(each.claim), span(each.geometries), span(each.workloads), *_measured(each)) for each in found]
        return Table(("Figure", "Array", "Workload", "Measured", "Interval", "Published"), tuple(rows), title)
    rows = [_range(group) for group in _groups(found)]
    columns = ("Figure", "Array", "Workloads", "Observed", "Least", "Most")
    grid = bounded(columns, rows, f"{title}, by figure and level", MOST_ROWS, RECORDS)
    return Table(grid.columns, grid.rows, grid.caption, grid.note or f"A row stands for several figures: {RECORDS}.")


def level(evidence: Evidence) -> str:
    """Return level and state: ``raid5``, ``raid5-1failed``."""
    return "".join(parse_geometry(evidence.geometries[0])[:2]) if evidence.geometries else ""


def _severity(evidence: Evidence) -> int:
    return SEVERITY.index(evidence.outcome)


def _groups(found: Sequence[Evidence]) -> list[list[Evidence]]:
    groups: dict[tuple[str, str], list[Evidence]] = {}
    for each in found:
        groups.setdefault((each.claim, level(each)), []).append(each)
    return list(groups.values())


def single(each: Evidence) -> TableRow:
    """Return the row of a promise, as in ``SINGLE``."""
    return (
        label(each.claim),
        span(each.geometries) if each.geometries else "",
        span(each.workloads) if each.workloads else "",
        each.measured,
        each.interval,
        each.bound,
        each.margin,
        each.outcome,
    )


def _measured(each: Evidence) -> tuple[str, str, str]:
    return each.measured, each.interval, _published(each)


def _published(each: Evidence) -> str:
    times = each.times_published
    return "" if times is None else f"{times:.3g} times"


def _grouped(group: Sequence[Evidence]) -> TableRow:
    first, worst = group[0], min(group, key=_severity)
    closest = min(group, key=lambda each: (_severity(each), each.margin_percent or 0.0))
    margin = f", {closest.margin}" if closest.margin else ""
    counts = Counter(each.outcome for each in group)
    return (
        label(first.claim),
        level(first),
        f"{len({each.workloads for each in group}):,}",
        f"{len(group):,}",
        f"{counts[Finding.PASS]:,}",
        f"{counts[Finding.FAIL]:,}",
        f"{counts[Finding.INCONCLUSIVE] + counts[Finding.BOUNDED]:,}",
        f"{span(closest.geometries)} {span(closest.workloads)}: {closest.measured}, limit {closest.bound}{margin}",
        worst.outcome,
    )


def _range(group: Sequence[Evidence]) -> TableRow:
    first, ordered = group[0], sorted(group, key=lambda each: each.value)
    workloads = len({each.workloads for each in group})
    return (
        label(first.claim),
        level(first),
        f"{workloads:,}",
        f"{len(group):,}",
        ordered[0].measured,
        ordered[-1].measured,
    )
