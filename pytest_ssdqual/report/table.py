"""The table at the end of a run, as lines of text; pure.

A RAID 5 run makes hundreds of claims, and nearly all of them are kept. So what failed or stayed undecided has a row
of its own, first and in full; the rest is in grids, with the smallest margin at the end of each row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict import Outcome
from pytest_ssdqual.report.evidence import Evidence
from pytest_ssdqual.report.grid import COLOUR, INDENT, MARK, Line, draw, grids, label, percent, sorting, span

HEAD = ("", "", "measured", "95 % interval", "limit", "margin")
INTERVAL = HEAD.index("95 % interval")


def table(evidence: Sequence[Evidence], width: int = 80, verbosity: int = 0) -> list[Line]:
    """All claims of a run within ``width`` columns; nothing if there are none.

    With a verbosity above 0 what passed is written in full too, below 0 not at all.
    """
    if not evidence:
        return []
    ordered = sorted(evidence, key=sorting)
    lines: list[Line] = []
    for outcome in (*MARK, Outcome.PASS) if verbosity > 0 else MARK:
        lines += _in_full([each for each in ordered if each.outcome is outcome], outcome, len(ordered), width)
    if verbosity == 0:
        for grid in grids(ordered):
            lines += [*draw(grid, width), Line("")]
        lines.append(Line("every limit and interval: -v, or the run folder"))
    return [*lines, *_summary(ordered)]


def _in_full(evidence: Sequence[Evidence], outcome: Outcome, of: int, width: int) -> Iterator[Line]:
    """A row for each, in columns; the interval goes below its row where the line would be too long."""
    if not evidence:
        return
    rows = [_columns(each) for each in evidence]
    widths = [max(map(len, column)) for column in zip(HEAD, *rows, strict=True)]
    spare = width - len(INDENT) - sum(widths)
    gap = INDENT if spare >= len(INDENT) * (len(HEAD) - 1) else " "
    show = [i for i in range(len(HEAD)) if i != INTERVAL or spare >= len(gap) * (len(HEAD) - 1)]

    def join(row: Sequence[str]) -> str:
        return INDENT + gap.join(row[i].ljust(widths[i]) if i < 2 else row[i].rjust(widths[i]) for i in show)

    title, heading = f"{outcome.upper()}: {len(evidence)} of {of}", join(HEAD)
    yield Line(title + heading[len(title) :], (COLOUR[outcome], "bold"))
    colour = (COLOUR[outcome],) if outcome in MARK else ()
    claim = ""
    for each, row in zip(evidence, rows, strict=True):
        if each.claim != claim:
            claim = each.claim
            yield Line(label(claim), ("bold",))
        yield Line(join(row), colour)
        if INTERVAL not in show:
            yield Line(f"{INDENT}{'':<{widths[0]}}{gap}{HEAD[INTERVAL]} {row[INTERVAL]}", colour)
    yield Line("")


def _columns(each: Evidence) -> tuple[str, ...]:
    numbers = (each.measured, each.interval, each.bound)
    if each.unit is Unit.IOPS:  # said by the claim, and these are the longest numbers
        numbers = (each.measured[:-5], each.interval[:-5], each.bound[:-5])
    return (span(each.geometries), span(each.workloads), *numbers, percent(each))


def _summary(evidence: Sequence[Evidence]) -> Iterator[Line]:
    counts = Counter(each.outcome for each in evidence)
    found = ", ".join(f"{counts[outcome]} {outcome}" for outcome in (Outcome.PASS, *MARK) if counts[outcome])
    worst = next((outcome for outcome in MARK if counts[outcome]), Outcome.PASS)
    yield Line(f"{len(evidence)} claim{'s' if len(evidence) > 1 else ''}: {found}", (COLOUR[worst], "bold"))
    passed = [each for each in evidence if each.outcome is Outcome.PASS]
    if passed:
        least = min(passed, key=lambda each: each.margin_percent)
        yield Line(f"least margin of what passed: {percent(least)}, {label(least.claim)}")
        yield Line(f"{INDENT}of {span(least.geometries)} {span(least.workloads)}")
    rehearsed = sorted({each.protocol for each in evidence if not each.acceptance})
    if rehearsed:
        yield Line(f"not for acceptance: protocol {', '.join(rehearsed)}", ("yellow", "bold"))
