"""A comparison drawn: each ratio with its interval beside 1, the most telling first; and the page around it.

A comparison as lines of text within the width of a terminal; pure.

A comparison for other programs: JSON with everything in base units, CSV with a row for each figure; pure.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.stats.estimate import Estimate, format_confidence
from pytest_ssdqual.qual.units import Unit, format_range, format_value
from pytest_ssdqual.qual.verdict.ratio import ChangeKind
from pytest_ssdqual.report.compare.circumstances import firmware_of, model_of
from pytest_ssdqual.report.compare.compare import Against, Circumstance, ComparedRun, Comparison, Pair, Weight
from pytest_ssdqual.report.evidence.evidence import finite
from pytest_ssdqual.report.html import small_page
from pytest_ssdqual.report.html.small_page import Section, SheetTable
from pytest_ssdqual.report.view.labels import label
from pytest_ssdqual.report.view.tables import INDENT, TextLine, columns

#: Of pytest's TerminalWriter, and the order in which they are told.
COLOUR = {
    ChangeKind.WORSE: ("red",),
    ChangeKind.BETTER: ("green",),
    ChangeKind.WORSE_ALONE: ("yellow",),
    ChangeKind.BETTER_ALONE: (),
    ChangeKind.WORSE_READ: (),
    ChangeKind.BETTER_READ: (),
    ChangeKind.OPEN: (),
}
HEAD = ("", "first", "now", "ratio", "interval", "")
SCATTER = (
    "An interval covers what varied within its run. Runs of the same drive also differ from each other, by what nobody "
    "has measured here: repeat a run to see it, and allow for it with --run-to-run."
)


def table(found: Comparison, width: int = 80, *, every: bool = False) -> list[TextLine]:
    """All of it; with ``every`` also each figure of which no difference is shown."""
    lines = [*_runs(found, width), *_facts(found, width)]
    for other in found.others:
        lines += _against(found, other, width, every=every)
    return [*lines, *_ending(found, width)]


def _runs(found: Comparison, width: int) -> Iterator[TextLine]:
    for number, run in enumerate((found.first, *(each.run for each in found.others))):
        called = "first" if number == 0 else "now" if len(found.others) == 1 else f"run {number + 1}"
        unread = f", {run.unreadable} verdicts unreadable" if run.unreadable else ""
        ended = "" if run.has_ended else ", has not ended: more may come"
        when = run.started[:16] or "time unknown"
        text = f"{called}: {run.name}, {when}, {len(run.figures):,} figures{unread}{ended}"
        yield from _wrapped(text, width, ("bold",))
    yield TextLine("")


def _facts(found: Comparison, width: int) -> Iterator[TextLine]:
    """What differs, as rows; then what is the same, in a few lines."""
    if not found.differences:
        yield TextLine("nothing that is known of machine, drives, spec, protocol and versions differs", ("bold",))
    for fact in sorted(found.differences, key=lambda each: -each.weight):
        yield from _difference(fact, width)
    alike = ", ".join(f"{each.name} {each.values[0]}" for each in found.alike)
    yield from _wrapped(f"the same: {alike or 'nothing that is known'}", width)
    yield TextLine("")


def _difference(fact: Circumstance, width: int) -> Iterator[TextLine]:
    colour = {Weight.FORBIDS: ("red", "bold"), Weight.LOUD: ("yellow", "bold")}.get(fact.weight, ())
    meaning = f"; {fact.meaning}" if fact.meaning else ""
    yield from _wrapped(f"differs: {fact.name}: {' -> '.join(fact.values)}{meaning}", width, colour)


def _against(found: Comparison, other: Against, width: int, *, every: bool) -> Iterator[TextLine]:
    if len(found.others) > 1:
        yield TextLine(f"{other.run.name} against {found.first.name}", ("bold",))
    show = [shown for shown in ChangeKind if every or shown is not ChangeKind.OPEN]
    for claim in dict.fromkeys(pair.key.claim for pair in other.pairs):
        pairs = [pair for pair in other.pairs if pair.key.claim == claim and pair.change.shown in show]
        if pairs:
            pairs.sort(key=lambda pair: (list(COLOUR).index(pair.change.shown), pair.key))
            colours = [COLOUR[pair.change.shown] for pair in pairs]
            yield from columns(label(claim), HEAD, [_row(pair) for pair in pairs], width, colours)
            yield TextLine("")
    yield from _wrapped(counted(other), width, ("bold",))
    if hidden := 0 if every else other.count(ChangeKind.OPEN):
        yield from _wrapped(f"{hidden:,} of which no difference is shown are not listed: --all lists them", width)
    for why, count in other.left_out.items():
        yield from _wrapped(f"{count:,} figure{_s(count)} not compared: {why}", width, ("yellow",))
    if other.only_old or other.only_new:
        text = f"{other.only_old:,} figures only in the first run, {other.only_new:,} only in {other.run.name}"
        yield from _wrapped(text, width)
    yield TextLine("")


def _row(pair: Pair) -> tuple[str, ...]:
    unit, ratio = pair.old.estimate.unit, pair.change.ratio
    name = f"{pair.key.geometry} {pair.key.workload}"
    if pair.key.group:
        name = f"{name} ({pair.key.group})"
    if pair.paired:
        name = f"{name}, {pair.paired} drives paired"
    elif pair.old.drives:
        name = f"{name}, {len(pair.old.drives)} and {len(pair.new.drives)} drives"
    return (
        name,
        format_value(pair.old.estimate.value, unit),
        format_value(pair.new.estimate.value, unit),
        format_value(ratio.value, Unit.RATIO, 1),
        format_range(ratio.low, ratio.high, Unit.RATIO),
        pair.change.shown.value if pair.change.shown is not ChangeKind.OPEN else "-",
    )


def counted(other: Against) -> str:
    """``3 worse, 1 better, 12 only when taken alone, 240 without a difference shown, of 256 figures compared``."""
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
    yield from _wrapped(caution(found), width)
    if not found.run_to_run_percent:
        yield from _wrapped(SCATTER, width)
    else:
        text = f"allowed for from run to run: a standard deviation of {found.run_to_run_percent:g} %"
        yield from _wrapped(text, width)


def caution(found: Comparison) -> str:
    """How many comparisons were judged together, and what that does to them."""
    changes = [pair.change for other in found.others for pair in other.pairs]
    level = min((each.ratio.confidence for each in changes), default=0.95)
    upheld = sum(other.upheld for other in found.others)
    shown = sum(each.p_value is not None for each in changes)
    readings = len(changes) - found.judged
    told = (
        f"{found.judged:,} comparisons at {format_confidence(level)}: without any difference "
        f"{_number(found.judged * (1 - level))} would show one when taken alone; better and worse hold for all of them "
        f"together (Bonferroni); of {shown:,} that show alone Benjamini-Yekutieli upholds {upheld:,}"
    )
    if readings:
        told += f"; {readings:,} more are of what was read, which is true of these runs and need not be of others"
    return told


def _wrapped(text: str, width: int, markup: Sequence[str] = ()) -> Iterable[TextLine]:
    for line in wrap(text, max(20, width), subsequent_indent=INDENT):
        yield TextLine(line, tuple(markup))


def _number(count: float) -> str:
    """``6.6``, ``0.15``, ``1,320``."""
    return f"{count:.2g}" if count < 100 else f"{count:,.0f}"


def _s(count: int) -> str:
    return "" if count == 1 else "s"


#: More rows are no longer read, and what is not drawn is in the table.
MOST_ROWS = 40
#: Of the table of a page: a full run has thousands of figures.
MOST_LISTED = 1000
#: Colours of the series, by what is shown; the words stand beside it.
SERIES = {
    ChangeKind.WORSE: 1, ChangeKind.WORSE_ALONE: 1, ChangeKind.WORSE_READ: 1,
    ChangeKind.BETTER: 2, ChangeKind.BETTER_ALONE: 2, ChangeKind.BETTER_READ: 2,
    ChangeKind.OPEN: 7,
}  # fmt: skip
ROW_IN, LABEL_IN = 0.2, 3.1
#: Characters of a name that there is room for in ``LABEL_IN``.
LONGEST_NAME = 40
#: Intervals are drawn to so many times the range of the figures at most; one that is unbounded would hide all others.
BEYOND = 1.5
#: The finest steps of the axis first; so many of them are labelled at most.
STEPS, MOST_TICKS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0), 9


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One ratio, and what stands beside it."""

    name: str
    pair: Pair


def svg(found: Comparison) -> str:
    """As a file of its own."""
    return small_page.file(_drawn(found))


def page(found: Comparison) -> str:
    """Self-contained HTML: facts, drawing, tables."""
    differences = tuple((each.name, *each.values, each.meaning) for each in found.differences)
    runs = (found.first, *(each.run for each in found.others))
    alike = "; ".join(f"{each.name}: {each.values[0]}" for each in found.alike)
    head = ("", *(run.name for run in runs), "what it means")
    sections = [
        Section(
            "What differs", () if differences else ("Nothing that is known.",), table=SheetTable(head, differences)
        ),
        Section("What is the same", (f"{alike or 'Nothing that is known'}.",)),
        Section("How much", (caption(found),), svg=_drawn(found)),
    ]
    for other in found.others:
        left_out = tuple(f"{count:,} figures not compared: {why}" for why, count in other.left_out.items())
        rows = [(each.name, *_numbers(each.pair)) for each in _ordered([other.pairs])]
        more = (f"The first {MOST_LISTED:,} of {len(rows):,} are listed.",) if len(rows) > MOST_LISTED else ()
        columns = ("figure", *(run.name for run in (found.first, other.run)), "ratio", "interval", "shown")
        words = (f"{counted(other)}.", *left_out, *more)
        sections.append(Section(f"{other.run.name}", words, table=SheetTable(columns, tuple(rows[:MOST_LISTED]))))
    scatter = SCATTER if not found.run_to_run_percent else ""
    lead = [f"{other.run.name} against {found.first.name}: {counted(other)}." for other in found.others]
    lead += [f"{fact.name} differs: {fact.meaning}." for fact in found.differences if fact.weight and fact.meaning]
    sections.append(Section("How sure", (f"{caution(found)}.", *([scatter] if scatter else []))))
    return small_page.page("Runs compared", lead, sections)


def caption(found: Comparison) -> str:
    """What is drawn, and how to read it."""
    count = sum(len(other.pairs) for other in found.others)
    drawn = f"The {MOST_ROWS} most telling of {count:,} figures" if count > MOST_ROWS else "Each figure"
    return (
        f"{drawn}: how many times what the first run measured, with the interval of that ratio. An interval that holds "
        "1 shows no difference."
    )


def _ordered(several: Sequence[Sequence[Pair]], names: Sequence[str] = ()) -> list[ComparedRow]:
    """What is shown first; then the largest changes for their interval."""
    rows = [
        ComparedRow(f"{_named(pair)}{f', {names[index]}' if names else ''}", pair)
        for index, pairs in enumerate(several)
        for pair in pairs
    ]
    order = list(COLOUR)
    return sorted(rows, key=lambda row: (order.index(row.pair.change.shown), -_telling(row.pair), row.name))


def _named(pair: Pair) -> str:
    group = f" ({pair.key.group})" if pair.key.group else ""
    return f"{label(pair.key.claim)} {pair.key.geometry} {pair.key.workload}{group}"


def _telling(pair: Pair) -> float:
    """The logarithm of the ratio over half the width of its interval."""
    ratio = pair.change.ratio
    low, high = max(ratio.low, 1e-9), min(ratio.high, 1e9)
    return abs(math.log(ratio.value)) / max(math.log(high / low), 1e-9)


def _numbers(pair: Pair) -> tuple[str, ...]:
    ratio = pair.change.ratio
    return (
        str(pair.old.estimate),
        str(pair.new.estimate),
        format_value(ratio.value, Unit.RATIO, 1),
        format_range(ratio.low, ratio.high, Unit.RATIO),
        pair.change.shown.value,
    )


def _drawn(found: Comparison) -> str:
    from pytest_ssdqual.report.charts.figure import Plate, drawing

    names = [other.run.name for other in found.others] if len(found.others) > 1 else []
    rows = _ordered([other.pairs for other in found.others], names)[:MOST_ROWS]
    with drawing():
        plate = Plate.of(max(1.2, ROW_IN * len(rows) + 0.7))
        axes = plate.axes("times the first run", "")
        box = axes.get_position(original=True)
        left = LABEL_IN / plate.figure.get_size_inches()[0]
        axes.set_position((left, box.y0, box.x1 - left, box.height))
        _rows(plate, axes, rows)
        return plate.svg("compared", "Ratios of the figures of two runs", caption(found))


def _rows(plate: object, axes: object, rows: Sequence[ComparedRow]) -> None:
    from matplotlib.axes import Axes

    from pytest_ssdqual.report.charts.base import INK, MARKERS, colour
    from pytest_ssdqual.report.charts.figure import Plate

    if not isinstance(axes, Axes) or not isinstance(plate, Plate):
        raise TypeError("rows are drawn on a plate's axes")
    axes.axvline(1.0, color=INK, linewidth=1.0)
    left, right = limits([row.pair.change.ratio for row in rows])
    for shown in dict.fromkeys(row.pair.change.shown for row in rows):
        mine = [(at, row.pair.change.ratio) for at, row in enumerate(rows) if row.pair.change.shown is shown]
        index = SERIES[shown]
        places, ratios = [at for at, _ in mine], [ratio for _, ratio in mine]
        lows, highs = [max(each.low, left) for each in ratios], [min(each.high, right) for each in ratios]
        axes.hlines(places, lows, highs, colors=colour(index), linewidth=1.4)
        hollow = shown not in (ChangeKind.WORSE, ChangeKind.BETTER)
        (drawn,) = axes.plot(
            [each.value for each in ratios], places, linestyle="", marker=MARKERS[index], color=colour(index),
            markerfacecolor="none" if hollow else colour(index),
        )  # fmt: skip
        plate.tell(drawn, [", ".join((rows[at].name, *_numbers(rows[at].pair))) for at in places])
        plate.entry(drawn, shown.value)
    axes.set_xscale("log")
    axes.set_xlim(left, right)
    axes.set_xticks(marked := ticks(left, right), [f"{each:g}" for each in marked])
    axes.set_xticks([], minor=True)
    axes.set_yticks(range(len(rows)), [_short(row.name) for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)


def limits(ratios: Sequence[Estimate]) -> tuple[float, float]:
    """Of the axis: 1 and all figures are inside, and the ends of intervals as far as ``BEYOND``."""
    values = [1.0, *(each.value for each in ratios)]
    low, high = min(values), max(values)
    beyond = (high / low) ** BEYOND * 1.05
    ends = [(max(each.low, low / beyond), min(each.high, high * beyond)) for each in ratios]
    low, high = min([low, *(each[0] for each in ends)]), max([high, *(each[1] for each in ends)])
    edge = max(1.002, (high / low) ** 0.04)
    return low / edge, high * edge


def ticks(left: float, right: float) -> list[float]:
    """Round ratios, 1 among them: evenly spaced ones, or 1, 2 and 5 times powers of ten where the range is wide."""
    for step in STEPS:
        if right / left < 5 and (right - left) / step <= MOST_TICKS:
            return [each * step for each in range(math.ceil(left / step), math.floor(right / step) + 1)]
    found: list[float] = []
    exponents = range(math.floor(math.log10(left)), math.ceil(math.log10(right)) + 1)
    for digits in ((1, 2, 5), (1,)):
        found = [digit * 10.0**exponent for exponent in exponents for digit in digits]
        found = [each for each in found if left <= each <= right]
        if len(found) <= MOST_TICKS:
            break
    # Of some hundred powers of ten, which nobody has measured, those that there is room for.
    return sorted({1.0, *found[:: max(1, math.ceil(len(found) / MOST_TICKS))]})


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1].rstrip('… ')}…"


SCHEMA = 1
#: What spreadsheets take for the beginning of a formula, also behind blanks and in another width.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

COLUMNS = (
    "run", "against", "claim", "geometry", "workload", "about", "group", "unit", "first", "first_low", "first_high",
    "now", "now_low", "now_high", "ratio", "ratio_low", "ratio_high", "confidence", "shown", "p_value", "is_reading",
    "drives_paired",
)  # fmt: skip


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
    """What a run is, without its figures."""
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
    }


def estimate_record(estimate: Estimate) -> dict[str, object]:
    """As in the records, but JSON has no infinity."""
    return {**estimate.to_record(), "value": finite(estimate.value)}


def rows(found: Comparison) -> Iterator[tuple[object, ...]]:
    """Of the CSV file, below ``COLUMNS``."""
    for other in found.others:
        for pair in other.pairs:
            key, change = pair.key, pair.change
            ends = (_ends(pair.old.estimate), _ends(pair.new.estimate), _ends(change.ratio))
            numbers = [number for each in ends for number in each]
            yield (
                other.run.name, found.first.name, key.claim, key.geometry, key.workload, key.about, key.group,
                pair.old.estimate.unit.value, *numbers, change.ratio.confidence, change.shown.value, change.p_value,
                change.ratio.is_reading, pair.paired,
            )  # fmt: skip


def csv_text(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """RFC 4180 with line feeds; no cell is a formula to a spreadsheet, whatever a drive or a spec is called."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([_cell(each) for each in line] for line in lines)
    return out.getvalue()


def _cell(value: object) -> str:
    """Numbers as they are; text that a spreadsheet would reckon with begins with an apostrophe."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value) if math.isfinite(value) else ""
    if value is None:
        return ""
    text = safe_text.line(str(value))
    return f"'{text}" if text.lstrip(" '\"").startswith(FORMULA) else text


def _ends(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.value, estimate.low, estimate.high
