"""Output of a comparison: text for the terminal, a chart and a page, JSON in base units, CSV; pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.stats.estimate import Estimate, format_confidence
from pytest_ssdqual.qual.units import Unit, format_range, format_value
from pytest_ssdqual.qual.verdict.ratio import ChangeKind
from pytest_ssdqual.report.charts.ratios import spread
from pytest_ssdqual.report.compare.circumstances import firmware_of, model_of
from pytest_ssdqual.report.compare.compare import (
    Against,
    Circumstance,
    ComparedRun,
    Comparison,
    Pair,
    Weight,
    whole,
)
from pytest_ssdqual.report.drawing.plot import Chart, Line, Point
from pytest_ssdqual.report.html import page as pages
from pytest_ssdqual.report.html.page import Section
from pytest_ssdqual.report.view.csv_table import csv_text
from pytest_ssdqual.report.view.tables import Table, TextLine, label, paragraph, text_table

#: Colours of pytest's TerminalWriter, in the order of output.
COLOUR = {
    ChangeKind.WORSE: ("red",),
    ChangeKind.BETTER: ("green",),
    ChangeKind.WORSE_ALONE: ("yellow",),
    ChangeKind.BETTER_ALONE: (),
    ChangeKind.WORSE_READ: (),
    ChangeKind.BETTER_READ: (),
    ChangeKind.OPEN: (),
}
HEAD = ("", "first", "now", "change", "interval", "")
SCATTER = (
    "An interval covers the variation within its run. Runs of the same drive also differ from each other, which two "
    "runs do not show: repeat a run to measure it, and give it with --run-to-run."
)
#: Maximum number of rows of the chart; the table has all.
MOST_ROWS = 40
#: Maximum number of rows of a page's table; a full run has thousands of figures.
MOST_LISTED = 1000
#: Series of the palette by kind of change.
SERIES = {
    ChangeKind.WORSE: 1, ChangeKind.WORSE_ALONE: 1, ChangeKind.WORSE_READ: 1,
    ChangeKind.BETTER: 2, ChangeKind.BETTER_ALONE: 2, ChangeKind.BETTER_READ: 2,
    ChangeKind.OPEN: 7,
}  # fmt: skip
#: Room for the names of the chart's rows.
NAMES_IN = 3.1

SCHEMA = 1
COLUMNS = (
    "run", "against", "claim", "geometry", "workload", "about", "group", "unit", "first", "first_low", "first_high",
    "now", "now_low", "now_high", "ratio", "ratio_low", "ratio_high", "confidence", "shown", "p_value", "is_reading",
    "drives_paired", "drive",
)  # fmt: skip


def table(found: Comparison, width: int = 80, *, every: bool = False) -> list[TextLine]:
    """Return the comparison as text; with ``every`` also figures without a shown difference."""
    lines = [*_runs(found, width), *_facts(found, width)]
    for other in found.others:
        lines += _against(found, other, width, every=every)
    return [*lines, *_ending(found, width)]


def _runs(found: Comparison, width: int) -> Iterator[TextLine]:
    for number, run in enumerate((found.first, *(each.run for each in found.others))):
        called = "first" if number == 0 else "now" if len(found.others) == 1 else f"run {number + 1}"
        unread = f", {run.unreadable} verdicts unreadable" if run.unreadable else ""
        ended = "" if run.has_ended else ", has not ended"
        when = run.started[:16] or "time unknown"
        text = f"{called}: {run.name}, {when}, {len(run.figures):,} figures{unread}{ended}"
        yield from paragraph(text, width, ("bold",))
    yield TextLine("")


def _facts(found: Comparison, width: int) -> Iterator[TextLine]:
    """Yield what differs, a row each, then what is the same."""
    if not found.differences:
        yield TextLine("no known difference of machine, drives, spec, protocol and versions", ("bold",))
    for fact in sorted(found.differences, key=lambda each: -each.weight):
        yield from _difference(fact, width)
    alike = ", ".join(f"{each.name} {each.values[0]}" for each in found.alike)
    yield from paragraph(f"the same: {alike or 'nothing known'}", width)
    yield TextLine("")


def _difference(fact: Circumstance, width: int) -> Iterator[TextLine]:
    colour = {Weight.FORBIDS: ("red", "bold"), Weight.LOUD: ("yellow", "bold")}.get(fact.weight, ())
    meaning = f"; {fact.meaning}" if fact.meaning else ""
    yield from paragraph(f"differs: {fact.name}: {' -> '.join(fact.values)}{meaning}", width, colour)


def _against(found: Comparison, other: Against, width: int, *, every: bool) -> Iterator[TextLine]:
    if len(found.others) > 1:
        yield TextLine(f"{other.run.name} against {found.first.name}", ("bold",))
    show = [shown for shown in ChangeKind if every or shown is not ChangeKind.OPEN]
    for claim in dict.fromkeys(pair.key.claim for pair in other.pairs):
        pairs = [pair for pair in other.pairs if pair.key.claim == claim and pair.change.shown in show]
        if pairs:
            pairs.sort(key=lambda pair: (list(COLOUR).index(pair.change.shown), pair.key, pair.drive))
            colours = [COLOUR[pair.change.shown] for pair in pairs]
            yield from text_table(Table(HEAD, tuple(map(_row, pairs)), label(claim)), width, colours)
            yield TextLine("")
    yield from paragraph(counted(other), width, ("bold",))
    if hidden := 0 if every else other.count(ChangeKind.OPEN):
        yield from paragraph(f"{hidden:,} without a shown difference are not listed: --all lists them", width)
    for why, count in other.left_out.items():
        yield from paragraph(f"{count:,} figure{_s(count)} not compared: {why}", width, ("yellow",))
    for text in _missing(other):
        yield from paragraph(text, width)
    yield TextLine("")


def _missing(other: Against) -> Iterator[str]:
    """Yield how many figures only one of the runs has, and how many counts failed only now, if there are any."""
    if other.rejected:
        passed = "verdict on a count" if other.rejected == 1 else "verdicts on counts"
        yield f"{other.rejected:,} {passed} passed in the first run and failed in {other.run.name}"
    if other.only_old or other.only_new:
        yield f"{other.only_old:,} figures only in the first run, {other.only_new:,} only in {other.run.name}"


def _row(pair: Pair) -> tuple[str, ...]:
    unit = pair.old.estimate.unit
    name = f"{pair.key.geometry} {pair.key.workload}"
    if pair.key.group:
        name = f"{name} ({pair.key.group})"
    if pair.paired:
        name = f"{name}, {pair.paired} drives paired"
    elif pair.drive:
        name = f"{name}, {pair.drive}"
    elif pair.old.drives:
        name = f"{name}, {len(pair.old.drives)} and {len(pair.new.drives)} drives"
    return (
        name,
        format_value(pair.old.estimate.value, unit),
        format_value(pair.new.estimate.value, unit),
        *_change(pair),
        pair.change.shown.value if pair.change.shown is not ChangeKind.OPEN else "-",
    )


def _change(pair: Pair) -> tuple[str, str]:
    """Return the change and its interval: a ratio, or of a percentage the difference in percentage points."""
    ratio, estimate = pair.change.ratio, pair.old.estimate
    if estimate.unit is not Unit.PERCENT:
        return format_value(ratio.value, Unit.RATIO, 1), format_range(ratio.low, ratio.high, Unit.RATIO)
    all_of_it = whole(pair.old).value
    value, low, high = (all_of_it * (each - 1) for each in (ratio.value, ratio.low, ratio.high))
    ends = (f"{each:+.1f}" if math.isfinite(each) else "∞" for each in (low, high))
    return f"{value:+.1f} points", "…".join(ends)


def counted(other: Against) -> str:
    """Return ``3 worse, 1 better, 12 only when taken alone, 240 without a difference shown, of 256 compared``."""
    alone, read = (
        other.count(ChangeKind.WORSE_ALONE, ChangeKind.BETTER_ALONE),
        other.count(ChangeKind.WORSE_READ, ChangeKind.BETTER_READ),
    )
    return (
        f"{other.count(ChangeKind.WORSE):,} worse, {other.count(ChangeKind.BETTER):,} better, "
        f"{alone:,} only when taken alone"
        f"{f', {read:,} only as read' if read else ''}, {other.count(ChangeKind.OPEN):,} without a difference shown, "
        f"of {len(other.pairs):,} figures compared"
    )


def _ending(found: Comparison, width: int) -> Iterator[TextLine]:
    yield from paragraph(caution(found), width)
    if not found.run_to_run_percent:
        yield from paragraph(SCATTER, width)
    else:
        yield from paragraph(_widened(found), width)


def caution(found: Comparison) -> str:
    """Return the number of comparisons judged together, and the expected number of false differences."""
    changes = [pair.change for other in found.others for pair in other.pairs]
    level = min((each.ratio.confidence for each in changes), default=0.95)
    upheld = sum(other.upheld for other in found.others)
    shown = sum(each.p_value is not None for each in changes)
    readings = len(changes) - found.judged
    sentence = (
        f"{found.judged:,} comparisons at {format_confidence(level)}: without any difference "
        f"{_number(found.judged * (1 - level))} would show one when taken alone; better and worse hold for all of them "
        f"together (Bonferroni); of {shown:,} that show alone Benjamini-Yekutieli upholds {upheld:,}"
    )
    if readings:
        sentence += f"; {readings:,} more are readings, which are facts about these runs only"
    return sentence


def _number(count: float) -> str:
    """``6.6``, ``0.15``, ``1,320``."""
    return f"{count:.2g}" if count < 100 else f"{count:,.0f}"


def _s(count: int) -> str:
    return "" if count == 1 else "s"


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A ratio with its label."""

    name: str
    pair: Pair


def svg(found: Comparison) -> str:
    """Return the chart as an SVG file."""
    return pages.svg_file(_Chart(found))


def page(found: Comparison) -> str:
    """Return a self-contained page: facts, chart, tables."""
    differences = tuple((each.name, *each.values, each.meaning) for each in found.differences)
    runs = (found.first, *(each.run for each in found.others))
    alike = "; ".join(f"{each.name}: {each.values[0]}" for each in found.alike)
    head = ("", *(run.name for run in runs), "meaning")
    sections = [
        Section("What differs", () if differences else ("Nothing known.",), table=Table(head, differences)),
        Section("What is the same", (f"{alike or 'Nothing known'}.",)),
        Section("Ratios", (caption(found),), svg=_Chart(found)),
    ]
    for other in found.others:
        left_out = tuple(f"{count:,} figures not compared: {why}" for why, count in other.left_out.items())
        rows = [(each.name, *_numbers(each.pair)) for each in _ordered([other.pairs])]
        more = (f"The table has the first {MOST_LISTED:,} of {len(rows):,}.",) if len(rows) > MOST_LISTED else ()
        columns = ("figure", *(run.name for run in (found.first, other.run)), "change", "interval", "shown")
        words = (f"{counted(other)}.", *left_out, *_missing(other), *more)
        sections.append(Section(f"{other.run.name}", words, table=Table(columns, tuple(rows[:MOST_LISTED]))))
    scatter = f"{_widened(found)}." if found.run_to_run_percent else SCATTER
    lead = [f"{other.run.name} against {found.first.name}: {counted(other)}." for other in found.others]
    lead += [f"{run.name} has not ended." for run in runs if not run.has_ended]
    lead += [f"{run.name}: {run.unreadable:,} verdicts are unreadable." for run in runs if run.unreadable]
    lead += [f"{fact.name} differs: {fact.meaning}." for fact in found.differences if fact.weight and fact.meaning]
    sections.append(Section("Confidence", (f"{caution(found)}.", scatter)))
    return pages.sheet("Runs compared", lead, sections)


def caption(found: Comparison) -> str:
    """Return the caption of the chart."""
    count = sum(len(other.pairs) for other in found.others)
    drawn = f"The {MOST_ROWS} most significant of {count:,} figures" if count > MOST_ROWS else "Each figure"
    text = f"{drawn}: ratio to the first run, with its interval. An interval that contains 1 shows no difference."
    return f"{text} {_widened(found).capitalize()}." if found.run_to_run_percent else text


def _widened(found: Comparison) -> str:
    return f"intervals include a standard deviation of {found.run_to_run_percent:g} % from run to run"


def _ordered(several: Sequence[Sequence[Pair]], names: Sequence[str] = ()) -> list[ComparedRow]:
    """Return rows with a shown difference first, then by change relative to the interval."""
    rows = [
        ComparedRow(f"{_named(pair)}{f', {names[index]}' if names else ''}", pair)
        for index, pairs in enumerate(several)
        for pair in pairs
    ]
    order = list(COLOUR)
    return sorted(rows, key=lambda row: (order.index(row.pair.change.shown), -_telling(row.pair), row.name))


def _named(pair: Pair) -> str:
    group = f" ({pair.key.group})" if pair.key.group else ""
    drive = f", {pair.drive}" if pair.drive else ""
    return f"{label(pair.key.claim)} {pair.key.geometry} {pair.key.workload}{group}{drive}"


def _telling(pair: Pair) -> float:
    """Return the logarithm of the ratio over half the width of its interval."""
    ratio = pair.change.ratio
    low, high = max(ratio.low, 1e-9), min(ratio.high, 1e9)
    return abs(math.log(ratio.value)) / max(math.log(high / low), 1e-9)


def _numbers(pair: Pair) -> tuple[str, ...]:
    return (
        str(pair.old.estimate),
        str(pair.new.estimate),
        *_change(pair),
        pair.change.shown.value,
    )


def _Chart(found: Comparison) -> str:
    names = [other.run.name for other in found.others] if len(found.others) > 1 else []
    rows = _ordered([other.pairs for other in found.others], names)[:MOST_ROWS]
    lines = [
        Line(
            [_ratio(y, row) for y, row in enumerate(rows) if row.pair.change.shown is shown],
            SERIES[shown],
            shown,
            {} if shown in (ChangeKind.WORSE, ChangeKind.BETTER) else {"markerfacecolor": "none"},
        )
        for shown in dict.fromkeys(row.pair.change.shown for row in rows)
    ]
    panel = spread([row.name for row in rows], lines, "times the first run", NAMES_IN)
    title, height_in = "Ratios of the figures of two runs", max(1.2, 0.2 * len(rows) + 0.7)
    return Chart("compared", title, caption(found), panel, Table((), ()), height_in=height_in).svg


def _ratio(y: int, row: ComparedRow) -> Point:
    ratio = row.pair.change.ratio
    return Point(ratio.value, y, interval=(ratio.low, ratio.high), words=", ".join((row.name, *_numbers(row.pair))))


def record(found: Comparison) -> dict[str, object]:
    """Plain JSON data."""
    return {
        "schema": SCHEMA,
        "first": run_record(found.first),
        "facts": [
            {
                "name": each.name,
                "values": list(each.values),
                "differs": each.differs,
                "weight": each.weight.name.lower(),
                "meaning": each.meaning,
            }
            for each in found.facts
        ],
        "comparisons_judged": found.judged,
        "run_to_run_percent": found.run_to_run_percent,
        "others": [_against_record(each) for each in found.others],
    }


def run_record(run: ComparedRun) -> dict[str, object]:
    """Return a run without its figures."""
    return {
        "name": run.name,
        "started": run.started,
        "model": model_of(run),
        "firmware": firmware_of(run),
        "figures": len(run.figures),
        "unreadable": run.unreadable,
        "has_ended": run.has_ended,
    }


def _against_record(other: Against) -> dict[str, object]:
    return {
        "run": run_record(other.run),
        "only_first": other.only_old,
        "only_now": other.only_new,
        "left_out": dict(other.left_out),
        "upheld_benjamini_yekutieli": other.upheld,
        "figures": [_pair(each) for each in other.pairs],
    }


def _pair(pair: Pair) -> dict[str, object]:
    key = pair.key
    return {
        "claim": key.claim,
        "geometries": list(key.geometries),
        "workloads": list(key.workloads),
        "about": key.about,
        "group": key.group,
        "direction": pair.direction.value,
        "first": estimate_record(pair.old.estimate),
        "now": estimate_record(pair.new.estimate),
        "ratio": estimate_record(pair.change.ratio),
        "shown": pair.change.shown.value,
        "p_value": pair.change.p_value,
        "drives_paired": pair.paired,
        "drive": pair.drive,
    }


def estimate_record(estimate: Estimate) -> dict[str, object]:
    """Return the estimate's record; infinity becomes null."""
    return {name: value for name, value in plain(estimate).items() if name != "unbounded"}


def csv(found: Comparison) -> str:
    """Return a row for each pair of figures."""
    return csv_text(COLUMNS, _rows(found))


def _rows(found: Comparison) -> Iterator[tuple[object, ...]]:
    for other in found.others:
        for pair in other.pairs:
            key, change = pair.key, pair.change
            ends = (_ends(pair.old.estimate), _ends(pair.new.estimate), _ends(change.ratio))
            numbers = [number for each in ends for number in each]
            yield (
                other.run.name, found.first.name, key.claim, key.geometry, key.workload, key.about, key.group,
                pair.old.estimate.unit.value, *numbers, change.ratio.confidence, change.shown.value, change.p_value,
                change.ratio.is_reading, pair.paired, pair.drive,
            )  # fmt: skip


def _ends(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.value, estimate.low, estimate.high
