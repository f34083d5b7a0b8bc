"""Table of all promises and table of figures without a promise; condensed if there are thousands; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.run_folder.reader import Judged
from pytest_ssdqual.report.view.tables import SEVERITY, Table, TableRow, bounded, label, parse_geometry, sorting, span

#: With more promises than this, a row stands for all verdicts of one claim on one level.
MOST_ROWS = 300
RECORDS = "all of them are in records.jsonl"
SINGLE = ("Claim", "Array", "Workload", "Measured", "Interval", "Limit", "Margin", "Published", "Outcome")
GROUPED = (
    "Claim", "Array", "Workloads", "Judged", "Pass", "Fail", "Undecided", "Least", "Most", "Closest to the limit",
    "Outcome",
)  # fmt: skip


def promised(judged: Iterable[Judged], most_rows: int = MOST_ROWS) -> Table:
    """Return a row for each promise; of more than ``most_rows``, for each claim of each level."""
    evidence = [each.evidence for each in judged if each.evidence.is_promised]
    return _listed(f"Promises: {len(evidence):,}", evidence, most_rows)


def observed(judged: Iterable[Judged]) -> Table:
    """Return the figures without a promise."""
    evidence = [each.evidence for each in judged if not each.evidence.is_promised]
    return _listed(f"Figures without a promise: {len(evidence):,}", evidence, MOST_ROWS)


def _listed(title: str, evidence: Sequence[Evidence], most_rows: int) -> Table:
    ordered = sorted(evidence, key=sorting)
    if len(ordered) <= most_rows:
        rows = tuple(map(single, sorted(ordered, key=_severity)))
        return Table(SINGLE, rows, title).used()
    groups: dict[tuple[str, str], list[Evidence]] = {}
    for each in ordered:
        groups.setdefault((each.claim, level(each)), []).append(each)
    grouped = [_grouped(group) for group in sorted(groups.values(), key=lambda group: min(map(_severity, group)))]
    table = bounded(GROUPED, grouped, f"{title}, by claim and level", MOST_ROWS, RECORDS).used()
    note = f"A row stands for all verdicts of one claim on one level ({len(ordered):,} in all): {RECORDS}."
    return replace(table, note=table.note or note)


def level(evidence: Evidence) -> str:
    """Return level and state: ``raid5``, ``raid5-1failed``."""
    return "".join(parse_geometry(evidence.geometries[0])[:2]) if evidence.geometries else ""


def _severity(evidence: Evidence) -> int:
    return SEVERITY.index(evidence.outcome)


def single(each: Evidence) -> TableRow:
    """Return the row of a figure, as in ``SINGLE``."""
    times = each.times_published
    return (
        label(each.claim),
        span(each.geometries),
        span(each.workloads),
        each.measured,
        each.interval,
        each.bound,
        each.margin,
        "" if times is None else f"{times:.3g} times",
        each.outcome if each.is_promised else "",
    )


def _grouped(group: Sequence[Evidence]) -> TableRow:
    """Return the row of several figures, as in ``GROUPED``."""
    first, worst = group[0], min(group, key=_severity)
    closest = min(group, key=lambda each: (_severity(each), each.margin_percent or 0.0))
    margin = f", {closest.margin}" if closest.margin else ""
    where = f"{span(closest.geometries)} {span(closest.workloads)}: {closest.measured}, limit {closest.bound}{margin}"
    counts = Counter(each.outcome for each in group)
    undecided = counts[Finding.INCONCLUSIVE] + counts[Finding.BOUNDED]
    numbers = [f"{number:,}" for number in (counts[Finding.PASS], counts[Finding.FAIL], undecided)]
    least, *_, most = (each.measured for each in sorted((*group, first), key=lambda each: each.value))
    return (
        label(first.claim),
        level(first),
        f"{len({each.workloads for each in group}):,}",
        f"{len(group):,}",
        *(numbers if first.is_promised else ("", "", "")),
        least,
        most,
        where if first.is_promised else "",
        worst.outcome if first.is_promised else "",
    )
