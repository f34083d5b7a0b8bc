"""A comparison drawn: each ratio with its interval beside 1, the most telling first; and the page around it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.units import Unit, format_range, format_value
from pytest_ssdqual.qual.verdict.ratio import Shown
from pytest_ssdqual.report.compare import text
from pytest_ssdqual.report.compare.compare import Comparison, Pair
from pytest_ssdqual.report.html import small_page
from pytest_ssdqual.report.html.small_page import Section, Table
from pytest_ssdqual.report.view.labels import label

#: More rows are no longer read, and what is not drawn is in the table.
MOST_ROWS = 40
#: Of the table of a page: a full run has thousands of figures.
MOST_LISTED = 1000
#: Colours of the series, by what is shown; the words stand beside it.
SERIES = {
    Shown.WORSE: 1, Shown.WORSE_ALONE: 1, Shown.WORSE_READ: 1, Shown.BETTER: 2, Shown.BETTER_ALONE: 2,
    Shown.BETTER_READ: 2, Shown.OPEN: 7,
}  # fmt: skip
ROW_IN, LABEL_IN = 0.2, 3.1
#: Characters of a name that there is room for in ``LABEL_IN``.
LONGEST_NAME = 40
#: Intervals are drawn to so many times the range of the figures at most; one that is unbounded would hide all others.
BEYOND = 1.5
#: The finest steps of the axis first; so many of them are labelled at most.
STEPS, MOST_TICKS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0), 9


@dataclass(frozen=True, slots=True)
class Row:
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
        Section("What differs", () if differences else ("Nothing that is known.",), table=Table(head, differences)),
        Section("What is the same", (f"{alike or 'Nothing that is known'}.",)),
        Section("How much", (caption(found),), svg=_drawn(found)),
    ]
    for other in found.others:
        left_out = tuple(f"{count:,} figures not compared: {why}" for why, count in other.left_out.items())
        rows = [(each.name, *_numbers(each.pair)) for each in _ordered([other.pairs])]
        more = (f"The first {MOST_LISTED:,} of {len(rows):,} are listed.",) if len(rows) > MOST_LISTED else ()
        columns = ("figure", *(run.name for run in (found.first, other.run)), "ratio", "interval", "shown")
        words = (f"{text.counted(other)}.", *left_out, *more)
        sections.append(Section(f"{other.run.name}", words, table=Table(columns, tuple(rows[:MOST_LISTED]))))
    scatter = text.SCATTER if not found.run_to_run_percent else ""
    lead = [f"{other.run.name} against {found.first.name}: {text.counted(other)}." for other in found.others]
    lead += [f"{fact.name} differs: {fact.meaning}." for fact in found.differences if fact.weight and fact.meaning]
    sections.append(Section("How sure", (f"{text.caution(found)}.", *([scatter] if scatter else []))))
    return small_page.page("Runs compared", lead, sections)


def caption(found: Comparison) -> str:
    """What is drawn, and how to read it."""
    count = sum(len(other.pairs) for other in found.others)
    drawn = f"The {MOST_ROWS} most telling of {count:,} figures" if count > MOST_ROWS else "Each figure"
    return (
        f"{drawn}: how many times what the first run measured, with the interval of that ratio. An interval that holds "
        "1 shows no difference."
    )


def _ordered(several: Sequence[Sequence[Pair]], names: Sequence[str] = ()) -> list[Row]:
    """What is shown first; then the largest changes for their interval."""
    rows = [
        Row(f"{_named(pair)}{f', {names[index]}' if names else ''}", pair)
        for index, pairs in enumerate(several)
        for pair in pairs
    ]
    order = list(text.COLOUR)
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


def _rows(plate: object, axes: object, rows: Sequence[Row]) -> None:
    from matplotlib.axes import Axes

    from pytest_ssdqual.report.charts.figure import Plate
    from pytest_ssdqual.report.charts.palette import INK, MARKERS, colour

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
        hollow = shown not in (Shown.WORSE, Shown.BETTER)
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
